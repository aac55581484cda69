package logwriter

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Options say where a Writer writes, and who takes what leaves. All but Synced and Compacted must be set.
type Options struct {
	Data *datadir.Data
	// Append writes batches to the log and returns once they are on disk: Data.WAL.Append, perhaps measured.
	Append func(batches ...wal.Batch) error
	// Synced, if set, is told of the requests that are on disk now, before anything of them leaves.
	Synced   func(requests []node.Persist)
	Deliver  func(messages []consensus.Message)
	Evaluate func(evaluations []raft.Evaluation)
	Put      func(inputs ...raft.Input) // to the core
	// Compacted, if set, is told that the log has forgotten what lies at or before a base.
	Compacted func(base consensus.SnapshotMeta)
}

// Writer writes the log of one member.
type Writer struct {
	options Options
	batches []wal.Batch // of the present write; kept for the next
}

// New returns a writer.
func New(options Options) *Writer { return &Writer{options: options} }

// Write makes requests durable, in their order, and does what they ask for after that.
func (w *Writer) Write(requests []node.Persist) error {
	o := &w.options
	seq, err := w.Sync(requests)
	if err != nil {
		return err
	}
	if o.Synced != nil {
		o.Synced(requests)
	}
	// The core must know what is on disk before anybody else does: it says so when it is asked, for reads.
	if seq != 0 {
		o.Put(raft.Persisted{Seq: seq})
	}
	for i := range requests {
		if len(requests[i].After) > 0 {
			o.Deliver(requests[i].After)
		}
		if len(requests[i].Evaluate) > 0 {
			o.Evaluate(requests[i].Evaluate)
		}
	}
	return w.compact(requests)
}

// Sync makes requests durable and lets nothing leave. It returns the number of the last one that is on disk, or zero if
// there was nothing to write.
func (w *Writer) Sync(requests []node.Persist) (seq uint64, err error) {
	w.batches = w.batches[:0]
	// Entries of a batch lie in the core's log: one that stays here keeps all that the log held then.
	defer func() { clear(w.batches) }()
	for i := range requests {
		if requests[i].Seq != 0 {
			seq = requests[i].Seq
			w.batches = append(w.batches, requests[i].Batch)
		}
	}
	if len(w.batches) == 0 {
		return 0, nil
	}
	if err := w.options.Append(w.batches...); err != nil {
		return 0, err
	}
	return seq, w.options.Data.Persisted(w.batches)
}

// compact lets the log forget what the last of some requests says.
func (w *Writer) compact(requests []node.Persist) error {
	for i := len(requests) - 1; i >= 0; i-- {
		base := requests[i].Base
		if base == nil {
			continue
		}
		if err := w.options.Data.WAL.Compact(*base); err != nil {
			return err
		}
		if w.options.Compacted != nil {
			w.options.Compacted(*base)
		}
		return nil
	}
	return nil
}
