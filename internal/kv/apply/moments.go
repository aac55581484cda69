package apply

import (
	"encoding/binary"
	"fmt"
	"sort"
	"sync"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// momentTable ties revisions to times. The goroutine that calls Apply changes it; any goroutine may read it.
//
// Invariants:
//  1. It has at most MostMoments rows. With one more, every other one of the older half is deleted, so the distance between
//     moments grows with their age.
//  2. A compaction deletes the moments before the last one that comes before all of the history that is kept.
//  3. No moment of a list that a reader holds is changed: a list is extended behind its end, shortened, or replaced.
type momentTable struct {
	mu   sync.Mutex
	list kv.Moments

	sum uint64 // of all rows, for the chain; of the goroutine that calls Apply
}

// MostMoments is how many moments are kept: with one each 10 seconds, the last half of them covers between three and six hours.
const MostMoments = 4096

func momentRow(seen kv.Revision) []byte {
	return binary.BigEndian.AppendUint64([]byte{tableState, rowMoment}, uint64(seen))
}

const momentForm = 1

func appendMoment(dst []byte, m *kv.Moment) []byte {
	dst = binary.AppendUvarint(append(dst, momentForm), uint64(m.Noted-m.Seen))
	dst = binary.AppendUvarint(dst, uint64(m.Time))
	return binary.AppendUvarint(dst, m.Member)
}

func decodeMoment(key, row []byte) (m kv.Moment, err error) {
	var numbers [3]uint64
	rest, err := openRow("moment", key, row, momentForm)
	if err != nil {
		return m, err
	}
	for i := range numbers {
		n := 0
		if numbers[i], n = binary.Uvarint(rest); n <= 0 {
			return m, fmt.Errorf("%w: moment %x", ErrCorruptRow, row)
		}
		rest = rest[n:]
	}
	if len(key) == 8 {
		m.Seen = kv.Revision(binary.BigEndian.Uint64(key))
	}
	m.Noted, m.Time, m.Member = m.Seen+kv.Revision(numbers[0]), int64(numbers[1]), numbers[2]
	if len(rest) > 0 || m.Seen <= 0 || m.Noted < m.Seen || m.Time < 0 || m.Time > kv.MostMomentTime {
		return m, fmt.Errorf("%w: moment %x", ErrCorruptRow, row)
	}
	return m, nil
}

func (t *momentTable) load(eng engine.Engine) error {
	return scan(eng, []byte{tableState, rowMoment}, func(key, row []byte) error {
		m, err := decodeMoment(key, row)
		if err == nil {
			t.list = append(t.list, m)
			t.sum ^= momentSum(&m)
		}
		return err
	})
}

// momentSum is what a moment adds to momentTable.sum.
func momentSum(m *kv.Moment) uint64 { return rowSum(momentRow(m.Seen), appendMoment(nil, m)) }

// all returns the moments. The list must not be modified.
func (t *momentTable) all() kv.Moments {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list
}

func (t *momentTable) set(list kv.Moments) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = list
}

// note executes a MomentOp; now is the store's revision. One that says nothing new changes nothing: a leader proposed it before
// it knew of the last one.
func (t *momentTable) note(w rowWriter, op *kv.MomentOp, now kv.Revision) error {
	m := kv.Moment{Time: op.Time, Member: op.Member, Seen: op.Seen, Noted: now}
	if m.Seen <= 0 || m.Seen > now || m.Time < 0 || m.Time > kv.MostMomentTime {
		return kv.ErrBadCommand
	}
	if n := len(t.list); n > 0 && m.Seen <= t.list[n-1].Seen {
		return nil
	}
	w.Set(momentRow(m.Seen), appendMoment(nil, &m))
	t.sum ^= momentSum(&m)
	list := append(t.list, m)
	if len(list) > MostMoments {
		list = t.thin(w, list)
	}
	t.set(list)
	return nil
}

// thin deletes every other one of the older half, but for the first.
func (t *momentTable) thin(w rowWriter, list kv.Moments) kv.Moments {
	half := len(list) / 2
	kept := make(kv.Moments, 0, MostMoments+1)
	for i := range list {
		if i < half && i%2 == 1 {
			w.DeleteRaw(momentRow(list[i].Seen))
			t.sum ^= momentSum(&list[i])
		} else {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// compact deletes the moments that no revision from rev on needs.
func (t *momentTable) compact(w rowWriter, rev kv.Revision) {
	first := sort.Search(len(t.list), func(i int) bool { return t.list[i].Noted >= rev }) - 1
	if first <= 0 {
		return
	}
	w.DeleteRawRange(momentRow(0), momentRow(t.list[first].Seen))
	for i := range first {
		t.sum ^= momentSum(&t.list[i])
	}
	t.set(append(make(kv.Moments, 0, len(t.list)-first+16), t.list[first:]...))
}
