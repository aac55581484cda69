package shell

import (
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/sim/dice"
)

// logWriter gives the disk lane its turns: one write at a time, of all queued batches.
type logWriter struct {
	*Life
	lanes   *lanes.Lanes
	writing []node.Persist
	synced  bool // they are on disk, and the work that waits for them is under way
}

// write begins a write of all queued batches, if the disk is idle.
func (l *logWriter) write() {
	if len(l.writing) > 0 {
		return
	}
	if l.writing = l.lanes.TakeWrites(); len(l.writing) == 0 {
		return
	}
	took := dice.Exponential(l.Rng, l.Pace.Disk)
	if slow := l.Slow(); slow > 0 {
		took += dice.Between(l.Rng, 0, slow)
	}
	if l.writing[len(l.writing)-1].Seq == 0 && len(l.writing) == 1 {
		took = 0 // only messages that waited for earlier writes
	}
	l.After(took, l.written)
}

// written is the end of a write: all of it is on disk.
func (l *logWriter) written() {
	if err := l.lanes.Writer().Begin(l.writing); err != nil {
		l.Fail(err)
		return
	}
	l.synced = true
	l.release()
}

// release does the work that waited for the write. Other events may come between two parts of it, as when the goroutine of a
// member waits for a processor.
func (l *logWriter) release() {
	for {
		more, err := l.lanes.Writer().Step()
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

// stalls is the share of steps after which the writer waits.
const stalls = 0.1
