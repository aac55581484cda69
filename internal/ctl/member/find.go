package member

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// withRemoved adds to a cluster those that jobs have removed, so that a command that is given again after its job has ended
// still means the same. Members come before those that bore their names, and later jobs before earlier ones.
func (s *session) withRemoved(ctx context.Context, cluster *quoratepb.Cluster) *quoratepb.Cluster {
	answer, err := s.jobs(ctx)
	if err != nil {
		return cluster
	}
	all := proto.CloneOf(cluster)
	for _, job := range slices.Backward(answer.Jobs) {
		for _, n := range job.Names {
			gone := &quoratepb.Member{Id: n.Id, Name: n.Name}
			if slices.ContainsFunc(all.Members, func(m *quoratepb.Member) bool { return m.Name == n.Name }) {
				gone.Name = ""
			}
			known := slices.ContainsFunc(all.Members, func(m *quoratepb.Member) bool { return m.Id == n.Id })
			if !known && slices.Contains(job.GetSpec().GetRemove(), n.Id) {
				all.Members = append(all.Members, gone)
			}
		}
	}
	return all
}

// findMember is wording.FindMember, whose error refuses the command.
func findMember(cluster *quoratepb.Cluster, word string) (*quoratepb.Member, error) {
	m, err := wording.FindMember(cluster, word)
	return m, refused(err)
}

// findMembers finds several, each once.
func findMembers(cluster *quoratepb.Cluster, words []string) ([]uint64, error) {
	ids, err := wording.FindMembers(cluster, words)
	return ids, refused(err)
}

// refused is the failure of a command that asks for what is not there, or makes no sense there; nil if err is.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return command.Refused(err)
}

// parsePeerURLs checks URLs as the server will, and sorts them as it does.
func parsePeerURLs(from string, texts []string) ([]string, error) {
	urls, err := wording.PeerURLs(from, texts)
	if err != nil {
		return nil, command.Usagef("%w", err)
	}
	return urls, nil
}
