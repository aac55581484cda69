package engine

// Background is the work that a store does by itself at one moment.
type Background struct {
	Flushing   bool // a flush is under way or due; false once nothing can become durable any more
	Compacting bool // an LSM compaction is under way
	Removing   bool // tables that are not needed any more are still on disk
}

// Background reports what the store does by itself. The simulator asks it, to let Pebble's goroutines finish before virtual
// time goes on.
func (e *lsm) Background() Background {
	if e.closed.Load() {
		return Background{}
	}
	m := e.db.Metrics()
	return Background{
		Flushing:   m.Flush.NumInProgress > 0 && e.failureNow() == nil,
		Compacting: m.Compact.NumInProgress > 0,
		Removing:   m.Table.ObsoleteCount > 0 || m.BlobFiles.ObsoleteCount > 0,
	}
}
