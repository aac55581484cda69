package check

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// revisionUsed checks that revisions grow with each entry that changes something, so that none is used twice: by one, or to the
// revision that an entry of the fast path fixed. The members' revisions are compared with the model's before; this check guards
// the model.
func (s *Suite) revisionUsed(e *consensus.Entry, before kv.Revision) {
	after := s.machine.model.Revision
	next := before + 1
	if e.ExactRevision != 0 {
		next = kv.Revision(e.ExactRevision)
	}
	if after != before && (after != next || after <= before) {
		s.report("revisions", "entry %v takes the revision from %d to %d", e.Position(), before, after)
	}
	if int(after) != len(s.machine.model.Events)+1 {
		s.report("revisions", "revision %d after %d changes", after, len(s.machine.model.Events))
	}
}

// Published records the revision of a member's store after it applied an index.
func (s *Suite) Published(member consensus.MemberID, index consensus.Index, revision kv.Revision) {
	s.logs.of(member).reached(index)
	s.Permits.Reached(member, index)
	if index == 0 || int(index) > len(s.machine.outcomes) {
		return
	}
	if want := s.machine.revisions[index-1]; revision != want {
		s.report("revisions", "member %v is at revision %d after index %d, which gives %d", member, revision, index, want)
	}
}
