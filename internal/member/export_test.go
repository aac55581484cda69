package member

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// HeardForTesting returns when a native client was heard last, as far as this member knows while it leads.
func (m *Member) HeardForTesting(client consensus.MemberID) time.Time {
	m.roll.mu.Lock()
	defer m.roll.mu.Unlock()
	return m.roll.heard[client]
}

// AdoptedForTesting returns the sequence numbers of the adopted proposals, in the order of the log.
func (r *Recovery) AdoptedForTesting() []uint64 {
	var sequences []uint64
	for i := range r.entries {
		if r.entries[i].Kind == consensus.EntryCommand {
			sequences = append(sequences, r.entries[i].Proposal.Sequence)
		}
	}
	return sequences
}
