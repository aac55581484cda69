package lab

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/sim/check"
)

// judge tells the laws of the simulator (package check) what members do. They judge every run beside the laws of this package,
// which name disasters, not what leads to them.
type judge struct{ *check.Suite }

// began tells what a member found on its disk, and which configuration its replica has in force.
func (j judge) began(id consensus.MemberID, restored *raft.Restored, replica *raft.Replica) {
	j.Started(id, restored)
	if inForce := replica.InForce(); len(inForce.Config.Members) > 0 {
		j.Configured(id, inForce.ID, &inForce.Config)
	}
	j.Stepped(id)
}

// persisting tells that a write of a member is under way.
func (j judge) persisting(in *raft.Status, request *node.Persist) {
	j.Persisting(in.ID, check.Core{Term: in.Term, Commit: in.Commit, Applied: in.Applied}, &request.Batch)
}

// performed tells what came of a step that began in a term.
func (j judge) performed(from consensus.Term, in *raft.Status, out *raft.Output) {
	for _, e := range out.Events {
		switch e := e.(type) {
		case raft.BecameLeader:
			j.Leader(in.ID, e.Term)
		case raft.Removed:
			j.Removed(in.ID)
		case raft.ConfigSettled:
			j.Settled(in.ID, e.ID, in.Term)
		}
	}
	if out.Config != nil {
		j.Configured(in.ID, out.Config.ID, &out.Config.Config)
	}
	j.Committed(in.ID, from, in.Term, in.Commit)
	j.Stepped(in.ID)
}
