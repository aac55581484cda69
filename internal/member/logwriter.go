package member

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/watchdog"
)

// logWriter owns the WAL: everything that waits goes into one sync. What promises that it is on disk leaves after that.
type logWriter struct {
	queue   queue[node.Persist]
	data    *datadir.Data
	task    *watchdog.Task
	clock   env.Clock
	observe func(took time.Duration) // of each write; may be nil

	deliver  func(messages []consensus.Message)
	evaluate func(evaluation raft.Evaluation)
	put      func(inputs ...raft.Input) // to the core

	batches []wal.Batch // of the present write; kept for the next
}

func newLogWriter(
	o *Options, dog *watchdog.Watchdog, deliver func([]consensus.Message), evaluate func(raft.Evaluation),
	put func(...raft.Input),
) *logWriter {
	w := &logWriter{
		data: o.Data, task: dog.Watch("writing the log"), clock: o.Clock, observe: o.Synced,
		deliver: deliver, evaluate: evaluate, put: put,
	}
	w.queue.init()
	return w
}

// run writes what is queued until ctx ends.
func (w *logWriter) run(ctx context.Context) error {
	var spare []node.Persist
	for {
		select {
		case <-w.queue.signal:
		case <-ctx.Done():
			return nil
		}
		spare = w.queue.take(spare)
		if len(spare) == 0 {
			continue
		}
		w.task.Begin()
		if err := w.write(spare); err != nil {
			return err
		}
		w.task.Idle()
	}
}

// write makes requests durable, in their order, and does what they ask for after that.
func (w *logWriter) write(requests []node.Persist) error {
	w.batches = w.batches[:0]
	var seq uint64
	for i := range requests {
		if requests[i].Seq != 0 {
			seq = requests[i].Seq
			w.batches = append(w.batches, requests[i].Batch)
		}
	}
	if len(w.batches) > 0 {
		begun := w.clock.Now()
		if err := w.data.WAL.Append(w.batches...); err != nil {
			return err
		}
		if w.observe != nil {
			w.observe(w.clock.Now().Sub(begun))
		}
		if err := w.data.Persisted(w.batches); err != nil {
			return err
		}
	}
	for i := range requests {
		if len(requests[i].After) > 0 {
			w.deliver(requests[i].After)
		}
		for _, evaluation := range requests[i].Evaluate {
			w.evaluate(evaluation)
		}
	}
	if seq != 0 {
		w.put(raft.Persisted{Seq: seq})
	}
	if base := latestBase(requests); base != nil {
		return w.data.WAL.Compact(*base)
	}
	return nil
}

// latestBase returns the last compaction among requests.
func latestBase(requests []node.Persist) *consensus.SnapshotMeta {
	for i := len(requests) - 1; i >= 0; i-- {
		if requests[i].Base != nil {
			return requests[i].Base
		}
	}
	return nil
}
