package breaks

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Unnamed is a negative control that gives repeated proposals another id, so that the state machine does not recognize them. It
// remembers the index of each first entry.
type Unnamed map[consensus.ProposalID]consensus.Index

// Alter returns the entries that are applied in place of a batch.
func (u Unnamed) Alter(batch []consensus.Entry) []consensus.Entry {
	batch = slices.Clone(batch)
	for i := range batch {
		id := &batch[i].Proposal
		if u[*id] != 0 && u[*id] != batch[i].Index && id.Sequence > 0 {
			id.Sequence += 1 << 40
			continue
		}
		u[*id] = batch[i].Index
	}
	return batch
}
