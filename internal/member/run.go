package member

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/storage/wal"
)

// turns wake the goroutines of the lanes.
type turns struct {
	asked [lanes.Answers + 1]chan struct{}
}

func (t *turns) init() {
	for i := range t.asked {
		t.asked[i] = make(chan struct{}, 1)
	}
}

// ask asks for a turn of a lane. If the lane has its turn now, it gets another one.
func (t *turns) ask(lane lanes.Lane) {
	select {
	case t.asked[lane] <- struct{}{}:
	default:
	}
}

// each runs the turns of a lane until ctx ends.
func (t *turns) each(ctx context.Context, lane lanes.Lane, turn func() error) error {
	for {
		select {
		case <-t.asked[lane]:
		case <-ctx.Done():
			return nil
		}
		if err := turn(); err != nil {
			return err
		}
	}
}

// runLoop is the goroutine of the loop.
func (m *Member) runLoop(ctx context.Context) error {
	ticker := time.NewTicker(m.options.TickInterval)
	defer ticker.Stop()
	later := time.NewTimer(m.options.TickInterval) // for offers that are not due yet
	defer later.Stop()
	for {
		select {
		case <-m.turns.asked[lanes.Loop]:
		case <-ticker.C:
		case <-later.C:
		case <-ctx.Done():
			return nil
		}
		m.watched.loop.begin()
		due, waits, more := m.lanes.Step(m.lanes.Take())
		if waits {
			later.Reset(due.Sub(m.options.Clock.Now()))
		}
		if more {
			m.turns.ask(lanes.Loop)
		}
	}
}

// runDisk is the goroutine that writes the log.
func (m *Member) runDisk(ctx context.Context) error {
	return m.turns.each(ctx, lanes.Disk, func() error {
		wrote, err := m.lanes.Write(m.watched.disk.begin)
		if wrote && err == nil {
			m.watched.disk.idle()
		}
		return err
	})
}

// runApply is the goroutine that applies committed entries.
func (m *Member) runApply(ctx context.Context) error {
	return m.turns.each(ctx, lanes.Apply, m.lanes.Apply)
}

// runAnswers is the goroutine that answers proposals of the fast path before they are committed.
func (m *Member) runAnswers(ctx context.Context) error {
	return m.turns.each(ctx, lanes.Answers, func() error {
		m.lanes.Answer()
		return nil
	})
}

// measured appends to the log and reports how long that took.
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
