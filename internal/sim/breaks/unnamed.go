package breaks

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Unnamed, a negative control, gives repeated proposals another id: the state machine does not know them then. It remembers
// where each was first.
type Unnamed map[consensus.ProposalID]consensus.Index

// Alter returns what is applied instead of a batch.
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
