package check

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// onceAgain checks that a second entry of one proposal changes nothing. The comparison with the model also finds members that
// apply it again; this check names the cause.
func (s *Suite) onceAgain(e *consensus.Entry, before kv.Revision) {
	if s.machine.model.Revision != before {
		s.report("applied-once", "proposal %v was applied again by entry %v", e.Proposal, e.Position())
	}
	s.Duplicates++
}
