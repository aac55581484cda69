package check

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// HeldBy returns the acknowledged writes that a member's disk alone proves: their committed entry is in its log, or a
// superquorum decided them, the member holds the record, and its log does not conflict. A recovery of that member must keep
// them.
func (s *Suite) HeldBy(member consensus.MemberID) (logged, records []Ack) {
	log := &s.durable.of(member).log
	chosen := consensus.Index(len(s.logs.chosen))
	decided := map[kv.Revision]consensus.AttemptID{}
	for id, p := range s.fastPath.promised {
		decided[kv.Revision(p.revision)] = consensus.AttemptIDOf(consensus.Attempt{Proposal: id, Revision: p.revision})
	}
	prefix := log.last() <= chosen && log.holds(consensus.Position{Index: log.last(), Term: s.logs.chosenAt(log.last())})
	for _, ack := range s.Acks.puts {
		at, _ := slices.BinarySearch(s.machine.revisions, ack.Revision)
		index := consensus.Index(at) + 1
		position := consensus.Position{Index: index, Term: s.logs.chosenAt(index)}
		switch attempt, fast := decided[ack.Revision]; {
		case index <= min(chosen, log.last()) && log.holds(position):
			logged = append(logged, ack)
		case fast && prefix && s.fastPath.records[member][attempt] && !s.fastPath.leaving[member][attempt]:
			records = append(records, ack)
		}
	}
	return logged, records
}
