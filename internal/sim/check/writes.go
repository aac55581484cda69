package check

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/node"
)

// Core is what the core of a member says of itself.
type Core struct {
	Term            consensus.Term
	Commit, Applied consensus.Index
}

// Taken tells what the core of a member takes in its next step, in order.
func (s *Suite) Taken(member consensus.MemberID, inputs []raft.Input) {
	s.Stepping(member)
	for i := range inputs {
		switch input := inputs[i].(type) {
		case raft.Receive:
			s.Offers.Took(member, &input.Message)
			if m := &input.Message; m.Kind == consensus.MsgPropose || m.Kind == consensus.MsgFastPropose {
				s.Given(member, m.Proposals)
			}
		case raft.Propose:
			s.Given(member, input.Proposals)
		}
	}
}

// Persisting tells that a write of a member is under way: its core has the entries and records, and may promise none of them
// before Written tells of the write.
func (s *Suite) Persisting(member consensus.MemberID, core Core, batch *consensus.Batch) {
	s.Recording(member, core.Term, core.Applied, batch)
	if batch.Reset != nil {
		s.Rebased(member, *batch.Reset, true)
	}
	s.Entered(member, core.Term)
	s.Appended(member, batch.Entries)
	s.ForgettingRecords(member, batch.Witness)
	for i := range batch.Entries {
		if e := &batch.Entries[i]; e.Kind == consensus.EntryConfig && e.Term == core.Term {
			s.Proposed(member, e.Position(), core.Commit)
		}
	}
}

// Written tells which writes are on disk now. It returns the number of the last write, zero if nothing was
// written.
func (s *Suite) Written(member consensus.MemberID, requests []node.Persist) (last uint64) {
	for i := range requests {
		r := &requests[i]
		if r.Seq == 0 {
			continue
		}
		last = r.Seq
		s.Synced(member, r.Batch.Hard, r.Batch.Entries, r.Batch.Reset)
		s.SyncedRecords(member, r.Batch.Witness)
	}
	return last
}

// Started tells what a member found on its disk, whose next life begins.
func (s *Suite) Started(member consensus.MemberID, restored *raft.Restored) {
	s.Recovered(member, restored.Hard, restored.Base, restored.Entries, restored.Applied)
	s.RecoveredRecords(member, restored.Records)
	s.Restarted(member, restored.Records)
	s.Offers.Began(member)
	s.SentOnce.Started(member)
}
