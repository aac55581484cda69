package member

import (
	"context"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/logwriter"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/watchdog"
)

// logWriter is the goroutine that owns the WAL.
type logWriter struct {
	queue  queue[node.Persist]
	writer *logwriter.Writer
	task   *watchdog.Task
}

func newLogWriter(
	o *Options, dog *watchdog.Watchdog, deliver func([]consensus.Message), evaluate func(raft.Evaluation),
	put func(...raft.Input),
) *logWriter {
	w := &logWriter{task: dog.Watch("writing the log"), writer: logwriter.New(logwriter.Options{
		Data: o.Data, Append: measured(o), Deliver: deliver, Put: put,
		Evaluate: func(evaluations []raft.Evaluation) {
			for _, evaluation := range evaluations {
				evaluate(evaluation)
			}
		},
	})}
	w.queue.init()
	return w
}

// measured appends to the log and tells how long that took.
func measured(o *Options) func(batches ...wal.Batch) error {
	if o.Synced == nil {
		return o.Data.WAL.Append
	}
	return func(batches ...wal.Batch) error {
		begun := o.Clock.Now()
		err := o.Data.WAL.Append(batches...)
		if err == nil {
			o.Synced(o.Clock.Now().Sub(begun))
		}
		return err
	}
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
		if err := w.writer.Write(spare); err != nil {
			return err
		}
		w.task.Idle()
	}
}
