package wording

import (
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/progress"
)

// Names are what members are called, by their ids: also those that are removed while somebody looks. It belongs to one
// goroutine.
type Names map[uint64]string

// Note remembers the names of the members of a cluster.
func (n Names) Note(cluster *quoratepb.Cluster) {
	for _, m := range cluster.GetMembers() {
		n[m.Id] = progress.Name(m)
	}
}

// NoteJobs remembers the names that jobs note: of members that may be gone.
func (n Names) NoteJobs(jobs ...*quoratepb.Job) {
	for _, job := range jobs {
		for _, named := range job.GetNames() {
			if _, met := n[named.Id]; !met {
				n[named.Id] = named.Name
			}
		}
	}
}

// Of returns how a member is called, or was; its id if that is not known.
func (n Names) Of(id uint64) string {
	if name, met := n[id]; met {
		return name
	}
	return consensus.MemberID(id).String()
}

// List joins what members are called.
func (n Names) List(ids []uint64) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = n.Of(id)
	}
	return strings.Join(names, ", ")
}
