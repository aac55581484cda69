package mvcc

import (
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Raise raises the revision of a store, and compacts all history below it, by rows in the batch. The store must be opened anew
// once the batch is committed, and be written to by nothing else meanwhile; CompactStep deletes what is compacted.
func Raise(eng engine.Engine, batch engine.Batch, revision kv.Revision) error {
	var now state
	if err := loadNumbers(eng, &now); err != nil {
		return err
	}
	n := &now.numbers
	batch.Set(writtenRow, appendNumbers(nil, int64(max(revision, now.revision)), n.keys, n.versions, n.bytes))
	batch.Set(compactRow, appendNumbers(nil, int64(max(revision, now.revision))))
	return nil
}
