package apply

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/engine"
)

// configTable holds the configuration. The goroutine that calls Apply changes it; any goroutine may read it.
type configTable struct {
	mu       sync.RWMutex
	meta     consensus.SnapshotMeta // of the last configuration entry, with the notice that settled it
	config   consensus.Config       // in force, by meta; replaced, not changed
	configID consensus.ConfigID
}

func (t *configTable) load(eng engine.Engine) error {
	row, found, err := eng.Get(rowConfig)
	if err != nil || !found {
		return fmt.Errorf("%w: no configuration: %w", ErrCorruptRow, err)
	}
	meta, rest, err := consensus.DecodeSnapshotMeta(row)
	if errors.Is(err, level.ErrLater) {
		return fmt.Errorf("%w: its configuration", ErrNewer)
	}
	if err != nil || len(rest) != 0 {
		return fmt.Errorf("%w: configuration: %w", ErrCorruptRow, err)
	}
	t.take(&meta)
	return nil
}

// inForce returns the configuration that is in force now that its entry is applied. It must not be modified.
func (t *configTable) inForce() (consensus.Config, consensus.ConfigID) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.config, t.configID
}

// last returns the configuration of the last configuration entry, joint if that is. It must not be modified.
func (t *configTable) last() consensus.Config {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.meta.Config
}

// entry returns the index of the last configuration entry, zero if none has been applied. The first configuration of a cluster
// is in no entry, and a member that joins later replays the log without it.
func (t *configTable) entry() consensus.Index {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.meta.ConfigID.Index
}

// lastWithEntry returns last and entry of one moment.
func (t *configTable) lastWithEntry() (consensus.Config, consensus.Index) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.meta.Config, t.meta.ConfigID.Index
}

// settled reports whether the last change is complete: no further entry of it is to come.
func (t *configTable) settled() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return !t.meta.Open
}

// snapshotMeta returns a copy of the metadata, with another position.
func (t *configTable) snapshotMeta(position consensus.Position) consensus.SnapshotMeta {
	t.mu.RLock()
	defer t.mu.RUnlock()
	meta := t.meta
	meta.Position, meta.Config, meta.Tombs = position, meta.Config.Clone(), slices.Clone(meta.Tombs)
	return meta
}

// applyChange applies the configuration of a configuration entry. It was in force in consensus before, so it cannot be refused.
// It returns the members that it removes for ever.
func (t *configTable) applyChange(w rowWriter, e *consensus.Entry) (removed []consensus.MemberID, err error) {
	var meta consensus.SnapshotMeta
	if removed, err = meta.ApplyConfig(e); err != nil {
		return nil, fmt.Errorf("%w: %w", unread(err), err)
	}
	t.set(w, &meta)
	return removed, nil
}

// unread is the error for an entry that consensus does not read: a later build's, or one that is damaged.
func unread(err error) error {
	if errors.Is(err, level.ErrLater) {
		return ErrLaterEntry
	}
	return ErrBadEntry
}

// applyNoop settles the configuration that a no-op names, if it names one. It returns the members that are removed for ever.
func (t *configTable) applyNoop(w rowWriter, e *consensus.Entry) (removed []consensus.MemberID, err error) {
	if len(e.Payload) == 0 {
		return nil, nil // as most
	}
	meta := t.snapshotMeta(e.Position())
	removed, settled, err := meta.ApplyNoop(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", unread(err), err)
	}
	if settled {
		t.set(w, &meta)
	}
	return removed, nil
}

func (t *configTable) set(w rowWriter, meta *consensus.SnapshotMeta) {
	w.Set(rowConfig, consensus.AppendSnapshotMeta(nil, meta))
	t.take(meta)
}

func (t *configTable) take(meta *consensus.SnapshotMeta) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meta = *meta
	t.meta.Config = meta.Config.Clone()
	t.config, t.configID = t.meta.Config, meta.ConfigID
	if meta.Protocol == consensus.ProtocolActivate && meta.Config.IsJoint() {
		t.config, t.configID.Stage = meta.Config.Settle(), 1
	}
}
