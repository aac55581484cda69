package perform

import (
	"fmt"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// Batch makes a batch of entries that a machine has just applied, with their results. revision is the store's before them.
// The error means that the machine does not know the sums any more: it was asked too late.
func Batch(m *apply.Machine, revision kv.Revision, entries []consensus.Entry, results []kv.Result) (*ship.Batch, error) {
	first := entries[0].Index
	before, known := m.ChainAt(first - 1)
	if !known || before.Index != first-1 {
		return nil, fmt.Errorf("the chain's sum of entry %d is not known any more", first-1)
	}
	b := &ship.Batch{Since: before.Since, Before: before.Sum, RevisionBefore: revision,
		Items: make([]backup.Item, len(entries))}
	for i := range entries {
		mark, known := m.ChainAt(entries[i].Index)
		if !known || mark.Index != entries[i].Index {
			return nil, fmt.Errorf("the chain's sum of entry %d is not known any more", entries[i].Index)
		}
		revision = max(revision, results[i].Revision) // a second entry of a proposal has the result of the first
		b.Items[i] = backup.Item{Entry: entries[i], Revision: revision, Sum: mark.Sum}
		if b.Own++; entries[i].Kind != consensus.EntryCommand || !kv.IsBackup(entries[i].Payload) {
			b.Own = 0
		}
	}
	return b, nil
}
