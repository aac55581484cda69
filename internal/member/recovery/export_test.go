package recovery

import "github.com/quorate/quorate/internal/consensus"

// AdoptedForTesting returns the sequence numbers of the adopted proposals, in the order of the log.
func (p *Plan) AdoptedForTesting() []uint64 {
	var sequences []uint64
	for i := range p.entries {
		if p.entries[i].Kind == consensus.EntryCommand {
			sequences = append(sequences, p.entries[i].Proposal.Sequence)
		}
	}
	return sequences
}
