package lanes

import (
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/logwriter"
	"github.com/quorate/quorate/internal/member/node"
)

// disk is the lane that owns the WAL.
type disk struct {
	queue  Queue[node.Persist]
	writer *logwriter.Writer
	spare  []node.Persist
}

func (l *Lanes) newWriter() *logwriter.Writer {
	o := &l.options
	if o.Append == nil {
		o.Append = o.Data.WAL.Append
	}
	return logwriter.New(logwriter.Options{
		Append: o.Append, Persisted: o.Data.Persisted, Compact: o.Data.WAL.Compact,
		Deliver: l.host.Deliver, Put: l.inbox.Put, Synced: l.checks.Synced, Took: l.took,
		Compacted: l.checks.Compacted, Faults: o.LogFaults,
		Evaluate: func(evaluations []raft.Evaluation) { l.answers.queue.Put(evaluations...) },
	})
}

// took is how long a request took that is on disk now, in microseconds.
func (l *Lanes) took(request *node.Persist) uint32 {
	if request.Asked.IsZero() {
		return 0
	}
	return node.Micros(l.options.Clock.Now().Sub(request.Asked))
}

// Write writes all queued batches with one sync, and does the work that waits for it. It calls begin first, unless the queue is
// empty.
func (l *Lanes) Write(begin func()) (wrote bool, err error) {
	d := &l.disk
	d.spare = d.queue.Take(d.spare)
	if len(d.spare) == 0 {
		return false, nil
	}
	begin()
	return true, d.writer.Write(d.spare)
}

// TakeWrites takes all queued writes. With Writer, the simulator does step by step what Write does at once.
func (l *Lanes) TakeWrites() []node.Persist { return l.disk.queue.Take(nil) }

// Writer is the writer of the log.
func (l *Lanes) Writer() *logwriter.Writer { return l.disk.writer }
