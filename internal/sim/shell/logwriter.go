package shell

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/logwriter"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
)

// logWriter writes the log: one write at a time, of everything that waits.
type logWriter struct {
	*Life
	data    *datadir.Data
	writer  *logwriter.Writer
	core    func() *raft.Replica
	put     func(inputs ...raft.Input)
	waiting []node.Persist
	writing []node.Persist
	synced  bool // they are on disk, and what they ask for is under way
	faults  logwriter.Faults
}

// persist queues a write. The checkers learn of the entries now, when the core has them, and again when they are safe.
func (l *logWriter) persist(request node.Persist) {
	s, batch, core := l.Suite, &request.Batch, l.core()
	s.Recording(l.ID, core.Term(), core.Status().Applied, batch)
	if batch.Reset != nil {
		s.Rebased(l.ID, *batch.Reset, true)
	}
	s.Entered(l.ID, core.Term())
	s.Appended(l.ID, batch.Entries)
	s.ForgettingRecords(l.ID, batch.Witness)
	for i := range batch.Entries {
		if e := &batch.Entries[i]; e.Kind == consensus.EntryConfig && e.Term == core.Term() {
			s.Proposed(l.ID, e.Position(), core.Status().Commit)
		}
	}
	l.Actions.Persisted(core.Term(), batch)
	l.waiting = append(l.waiting, request)
	l.write()
}

// write begins a write of everything that waits, if the disk is idle.
func (l *logWriter) write() {
	if len(l.writing) > 0 || len(l.waiting) == 0 {
		return
	}
	l.writing, l.waiting = l.waiting, nil
	took := dice.Exponential(l.Rng, l.Pace.Disk)
	if slow := l.Slow(); slow > 0 {
		took += dice.Between(l.Rng, 0, slow)
	}
	if l.writing[len(l.writing)-1].Seq == 0 && len(l.writing) == 1 {
		took = 0 // nothing but messages that waited for earlier writes
	}
	l.After(took, l.written)
}

// newWriter returns what ships, with the checkers beside it.
func (l *logWriter) newWriter() *logwriter.Writer {
	return logwriter.New(logwriter.Options{
		Data: l.data, Append: l.data.WAL.Append, Synced: l.onDisk, Deliver: l.Send, Evaluate: l.answerFast, Put: l.put,
		Compacted: func(base consensus.SnapshotMeta) { l.Suite.Rebased(l.ID, base, false) },
		Faults:    l.faults,
	})
}

// onDisk tells the checkers what is on disk now: it may be said to others.
func (l *logWriter) onDisk(requests []node.Persist) {
	var seq uint64
	for i := range requests {
		r := &requests[i]
		if r.Seq == 0 {
			continue
		}
		seq = r.Seq
		l.Suite.Synced(l.ID, r.Batch.Hard, r.Batch.Entries, r.Batch.Reset)
		l.Suite.SyncedRecords(l.ID, r.Batch.Witness)
	}
	l.Note(diary.Persist, seq, uint64(len(requests)), 0, nil)
}

// written is the end of a write: all of it is on disk.
func (l *logWriter) written() {
	if err := l.writer.Begin(l.writing); err != nil {
		l.Fail(err)
		return
	}
	l.synced = true
	l.release()
}

// release lets happen what the write was waited for. Anything may come between two parts of that, as where the goroutine of a
// member has to wait for a processor.
func (l *logWriter) release() {
	for {
		more, err := l.writer.Step()
		switch {
		case err != nil:
			l.Fail(err)
			return
		case !more:
			l.writing, l.synced = nil, false
			l.Suite.Released()
			l.write()
			return
		case dice.Chance(l.Rng, stalls):
			l.After(dice.Exponential(l.Rng, dice.Pick(l.Rng, l.Pace.Loop, l.Pace.Disk)), l.release)
			return
		}
	}
}

// stalls is the share of steps after which the writer has to wait.
const stalls = 0.1

// answerFast tells proposers what their entries will give, as the state that is applied a little later says.
func (l *logWriter) answerFast(evaluations []raft.Evaluation) {
	l.After(dice.Exponential(l.Rng, l.Pace.Apply), func() {
		var answers []consensus.Message
		for i := range evaluations {
			if answer, known := node.Answer(&evaluations[i], l.data.Machine); known {
				answers = append(answers, answer)
			}
		}
		l.Send(answers)
	})
}
