package apply

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Tombstone records that a member was removed for ever, and by which entry.
type Tombstone struct {
	Member consensus.MemberID
	Index  consensus.Index
}

// memberTable holds the data of members beside the configuration: which were removed, and what the others published of
// themselves. The goroutine that calls Apply changes it; any goroutine may read it.
type memberTable struct {
	mu        sync.RWMutex
	tombs     []Tombstone // sorted by member; replaced, not changed
	published map[consensus.MemberID]kv.PublishOp
}

func (t *memberTable) load(eng engine.Engine) error {
	t.published = map[consensus.MemberID]kv.PublishOp{}
	err := scan(eng, []byte{tableState, rowTombstone}, func(rest, value []byte) error {
		index, err := decodeNumber("tombstone", value)
		if err != nil || len(rest) != 8 {
			return fmt.Errorf("%w: tombstone %x", ErrCorruptRow, rest)
		}
		id := consensus.MemberID(binary.BigEndian.Uint64(rest))
		t.tombs = append(t.tombs, Tombstone{Member: id, Index: consensus.Index(index)})
		return nil
	})
	if err != nil {
		return err
	}
	return scan(eng, []byte{tableState, rowPublished}, func(_, value []byte) error {
		cmd, err := kv.DecodeCommand(value)
		if err != nil || cmd.Publish == nil {
			return fmt.Errorf("%w: published: %w", ErrCorruptRow, err)
		}
		t.published[consensus.MemberID(cmd.Publish.Member)] = *cmd.Publish
		return nil
	})
}

// tombstones returns the removed members in the order of their ids. The list must not be modified.
func (t *memberTable) tombstones() []Tombstone {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.tombs
}

// removed reports whether a member was removed, and by which entry.
func (t *memberTable) removed(id consensus.MemberID) (consensus.Index, bool) {
	tombs := t.tombstones()
	at, found := findTombstone(tombs, id)
	if !found {
		return 0, false
	}
	return tombs[at].Index, true
}

func findTombstone(tombs []Tombstone, id consensus.MemberID) (int, bool) {
	return slices.BinarySearchFunc(tombs, id, func(t Tombstone, id consensus.MemberID) int {
		switch {
		case t.Member < id:
			return -1
		case t.Member > id:
			return 1
		}
		return 0
	})
}

// bury marks a member as removed, and deletes what it published. It returns false if the member was removed before.
func (t *memberTable) bury(w rowWriter, id consensus.MemberID, at consensus.Index) bool {
	where, found := findTombstone(t.tombs, id)
	if found {
		return false
	}
	w.Set(memberRow(rowTombstone, id), appendIndex(at))
	if _, known := t.publishedBy(id); known {
		w.DeleteRaw(memberRow(rowPublished, id))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tombs = slices.Insert(slices.Clone(t.tombs), where, Tombstone{Member: id, Index: at})
	delete(t.published, id)
	return true
}

// publishedBy returns what a member published of itself.
func (t *memberTable) publishedBy(id consensus.MemberID) (kv.PublishOp, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	op, found := t.published[id]
	return op, found
}

// publish keeps what a member publishes of itself. A removed member is ignored: it returns false.
func (t *memberTable) publish(w rowWriter, op *kv.PublishOp) bool {
	id := consensus.MemberID(op.Member)
	if _, removed := t.removed(id); removed {
		return false
	}
	cmd := kv.Command{Publish: op}
	w.Set(memberRow(rowPublished, id), cmd.Append(nil))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.published[id] = *op
	return true
}
