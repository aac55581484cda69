package member

import "github.com/quorate/quorate/internal/consensus"

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
