package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/command"
)

// errUnknownMember is a word that names no member.
var errUnknownMember = errors.New("no member is called")

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

// findMember finds a member by its name, which is how people call it, or by its id: in hexadecimal as the tables write
// it, or in decimal as JSON does.
func findMember(cluster *quoratepb.Cluster, word string) (*quoratepb.Member, error) {
	var found, known []string
	var member *quoratepb.Member
	for _, m := range cluster.Members {
		known = append(known, command.HexID(m.Id)+" ("+m.Name+")")
		if command.HexID(m.Id) == strings.ToLower(word) || m.Name == word || strconv.FormatUint(m.Id, 10) == word {
			found = append(found, command.HexID(m.Id)+" ("+m.Name+")")
			member = m
		}
	}
	switch len(found) {
	case 1:
		return member, nil
	case 0:
		return nil, command.Refused(fmt.Errorf("%w %q; there are %s", errUnknownMember, word,
			strings.Join(known, ", ")))
	default:
		return nil, command.Refused(fmt.Errorf("%q may be %s; give the full id of the one you mean", word,
			strings.Join(found, " or ")))
	}
}

// findMembers finds several, each once.
func findMembers(cluster *quoratepb.Cluster, words []string) ([]uint64, error) {
	var ids []uint64
	for _, word := range words {
		m, err := findMember(cluster, word)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, m.Id) {
			ids = append(ids, m.Id)
		}
	}
	return ids, nil
}

// assignment is NAME=URL[,URL].
type assignment struct {
	name string
	urls []string
}

func parseAssignments(flag string, texts []string) ([]assignment, error) {
	var out []assignment
	for _, text := range texts {
		name, list, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, command.Usagef("%s %s: write NAME=URL[,URL]", flag, text)
		}
		urls, err := parsePeerURLs(flag, strings.Split(list, ","))
		if err != nil {
			return nil, err
		}
		out = append(out, assignment{name, urls})
	}
	return out, nil
}

// parsePeerURLs checks URLs as the server will, and sorts them as it does.
func parsePeerURLs(from string, texts []string) ([]string, error) {
	urls, err := config.ParseURLs(strings.Join(texts, ","))
	if err != nil {
		return nil, command.Usagef("%s: %w", from, err)
	}
	if len(urls) == 0 {
		return nil, command.Usagef("%s: a member needs a peer URL, such as http://10.0.4.9:2380", from)
	}
	var out []string
	for _, u := range urls {
		out = append(out, u.String())
	}
	return slices.Compact(out), nil
}
