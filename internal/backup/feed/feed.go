package feed

import (
	"sync"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/perform"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// Feed keeps the entries that this member applied last while a backup is on, so that a member that is appointed goes on where
// the one before it ended. It never waits, and forgets the oldest where there are too many. Without a backup it keeps nothing.
type Feed struct {
	most int64 // bytes

	mu       sync.Mutex
	batches  []fed // without a hole
	bytes    int64
	follows  bool         // the last batch ended at end
	end      backup.Point // of the last batch
	revision kv.Revision  // of the store after it
	changed  broadcast.Signal
}

// fed is a batch, with the generation of the policy after it.
type fed struct {
	*ship.Batch
	generation uint64
}

// New returns a Feed that keeps so many bytes at most.
func New(most int64) *Feed { return &Feed{most: most} }

// Begin takes the state of a machine to which nothing is being applied: what is applied from now on follows it.
func (f *Feed) Begin(m *apply.Machine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.Backup().Policy.On {
		f.follow(m)
	}
}

// Applied takes a batch that a machine has just applied.
func (f *Feed) Applied(m *apply.Machine, entries []consensus.Entry, results []kv.Result) {
	if !m.Backup().Policy.On {
		f.forget()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows && f.end.Index+1 == entries[0].Index {
		if batch, err := perform.Batch(m, f.revision, entries, results); err == nil {
			f.keep(fed{batch, m.Backup().Generation})
		} else {
			f.drop()
		}
	} else {
		f.drop()
	}
	f.follow(m)
	f.changed.Send()
}

func (f *Feed) follow(m *apply.Machine) {
	mark := m.Chain()
	f.follows, f.end, f.revision = true, backup.Point{Index: mark.Index, Sum: mark.Sum}, m.Store().Revision()
}

// Replaced notes that a snapshot has taken the place of the store: m is its machine, to which nothing is being applied.
func (f *Feed) Replaced(m *apply.Machine) {
	f.forget()
	f.Begin(m)
}

func (f *Feed) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop()
	f.follows = false
}

func (f *Feed) drop() { f.batches, f.bytes = nil, 0 }

func (f *Feed) keep(batch fed) {
	f.batches = append(f.batches, batch)
	f.bytes += bytesOf(batch.Batch)
	dropped := 0
	for f.bytes > f.most && dropped < len(f.batches) {
		f.bytes -= bytesOf(f.batches[dropped].Batch)
		f.batches[dropped] = fed{}
		dropped++
	}
	f.batches = f.batches[dropped:]
}

func bytesOf(b *ship.Batch) (bytes int64) {
	for i := range b.Items {
		bytes += int64(b.Items[i].Entry.SizeBytes())
	}
	return bytes
}

// More returns a channel that is closed when more was applied, or other entries are kept.
func (f *Feed) More() <-chan struct{} { return f.changed.Next() }

// After returns the batches that have entries after one, or all that are left. A batch that begins before is cut. Batches
// with a later policy than that of a generation are left out: entries since then are for the recipients of that policy alone.
func (f *Feed) After(index consensus.Index, generation uint64) (batches []*ship.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.batches {
		if b.generation > generation {
			break
		}
		last := b.Items[len(b.Items)-1].Entry.Index
		switch first := b.Items[0].Entry.Index; {
		case last <= index:
		case first > index:
			batches = append(batches, b.Batch)
		default:
			n := index - first + 1
			batches = append(batches, &ship.Batch{Since: b.Since, Before: b.Items[n-1].Sum,
				RevisionBefore: b.Items[n-1].Revision, Items: b.Items[n:], Own: min(b.Own, int(last-index))})
		}
	}
	return batches
}

// Held returns the bytes of the entries that are kept.
func (f *Feed) Held() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}

// Last returns the last entry that was applied; false: none was yet since the backup is on.
func (f *Feed) Last() (backup.Point, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end, f.follows
}

// Sum returns the chain's sum after an entry, if all entries after it are here.
func (f *Feed) Sum(index consensus.Index) (uint64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.follows {
		return 0, false
	}
	if index == f.end.Index {
		return f.end.Sum, true
	}
	for _, b := range f.batches {
		first := b.Items[0].Entry.Index
		switch last := b.Items[len(b.Items)-1].Entry.Index; {
		case index+1 == first:
			return b.Before, true
		case index >= first && index <= last:
			return b.Items[index-first].Sum, true
		}
	}
	return 0, false
}
