package replay

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/apply"
)

// log applies the segments, up to the target.
func (r *replaying) log() (err error) {
	r.ahead(func(i int, f fetched) bool {
		stored := &r.plan.Segments[i]
		if err = f.err; err != nil {
			return false
		}
		if r.copies != nil {
			if err = r.copies.beforeSegment(r.state, stored); err != nil {
				return false
			}
		}
		more, applying := r.apply(f.segment)
		if err = damage(stored.Hash, stored.String(), applying); err != nil {
			return false
		}
		if r.before != (backup.Hash{}) && f.segment.Predecessor != r.before {
			r.state.Branches++
		}
		if r.before = stored.Hash; more {
			r.state.named = stored.End
		}
		r.told(stored.Size)
		return more
	})
	if err == nil {
		err = r.ctx.Err()
	}
	return err
}

// Bounds of the entries that are applied at once: their sums are compared after that.
const (
	atOnce      = 512
	atOnceBytes = 4 << 20
)

// apply applies what is new of a segment and within the target; more is false if something was not.
func (r *replaying) apply(s *backup.Segment) (more bool, err error) {
	at := r.state.Machine.Chain()
	items := s.Items
	if s.Since != at.Since {
		return false, fmt.Errorf("%w: its chain began after entry %d, and that of the state after %d", ErrOtherHistory, s.Since,
			at.Since)
	}
	if first := items[0].Entry.Index; first == at.Index+1 && s.Before != at.Sum {
		return false, ErrOtherHistory
	} else if first <= at.Index {
		known := items[at.Index-first]
		if known.Sum != at.Sum {
			return false, ErrOtherHistory
		}
		items = items[at.Index-first+1:]
	}
	if len(items) > 0 && items[0].Entry.Term < r.state.Machine.Applied().Term {
		return false, ErrOtherHistory
	}
	for len(items) > 0 {
		n := r.fitting(items)
		if n == 0 {
			return false, nil
		}
		if err := r.applyItems(s.Epoch, items[:n]); err != nil {
			return false, err
		}
		items = items[n:]
		if r.ctx.Err() != nil {
			return false, r.ctx.Err()
		}
	}
	return true, nil
}

// fitting returns how many of the items are applied at once: zero if the first one is behind the target.
func (r *replaying) fitting(items []backup.Item) (n int) {
	for bytes := 0; n < min(len(items), atOnce) && (n == 0 || bytes < atOnceBytes); n++ {
		if !r.plan.Target.Within(items[n].Entry.Index, backup.Moment{Revision: items[n].Revision, Time: items[n].Time}) {
			break
		}
		bytes += items[n].Entry.SizeBytes()
	}
	return n
}

func (r *replaying) applyItems(epoch uint64, items []backup.Item) error {
	entries := make([]consensus.Entry, len(items))
	for i := range items {
		entries[i] = items[i].Entry
	}
	m := r.state.Machine
	if _, err := m.Apply(entries); errors.Is(err, apply.ErrBadEntry) {
		return fmt.Errorf("%w: %w", backup.ErrDamaged, err) // no member had it
	} else if err != nil {
		return err
	}
	for i := range items {
		mark, known := m.ChainAt(items[i].Entry.Index)
		if !known || mark.Index != items[i].Entry.Index || mark.Sum != items[i].Sum {
			return fmt.Errorf("entry %d: %w", items[i].Entry.Index, ErrDiffers)
		}
	}
	last := &items[len(items)-1]
	if m.Store().Revision() != last.Revision {
		return fmt.Errorf("entry %d: revision %d instead of %d: %w", last.Entry.Index, m.Store().Revision(), last.Revision,
			ErrDiffers)
	}
	r.state.At.Epoch = epoch
	r.state.At.Point = backup.Point{Index: last.Entry.Index, Sum: last.Sum}
	r.state.At.Moment = backup.Moment{Revision: last.Revision, Time: last.Time}
	r.state.Entries += len(items)
	r.progress.Entries += len(items)
	return nil
}
