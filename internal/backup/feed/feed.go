package feed

import (
	"slices"
	"sort"
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
	bytes      int64
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
			f.keep(batch, m.Backup().Generation)
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

// Bounds of what is kept together, and of what one After returns. Small batches become one: a feed of many has more to search,
// and each batch costs more than its entries.
const (
	mergeBytes   = 64 << 10
	afterBytes   = 4 << 20
	afterBatches = 1024
)

func (f *Feed) keep(b *ship.Batch, generation uint64) {
	more := fed{Batch: b, generation: generation, bytes: bytesOf(b)}
	f.bytes += more.bytes
	if n := len(f.batches); n > 0 && f.batches[n-1].takes(&more, min(mergeBytes, f.most/64)) {
		f.batches[n-1].append(&more)
	} else {
		f.batches = append(f.batches, more)
	}
	dropped := 0
	for f.bytes > f.most && dropped < len(f.batches) {
		f.bytes -= f.batches[dropped].bytes
		f.batches[dropped] = fed{}
		dropped++
	}
	f.batches = f.batches[dropped:]
}

// takes reports whether the batch that follows can become a part of this one, of so many bytes at most.
func (b *fed) takes(next *fed, most int64) bool {
	return b.generation == next.generation && b.Since == next.Since && b.bytes+next.bytes <= most
}

// append appends the batch that follows. Readers may have the batch as it was: it is replaced, and its items stay where they
// are, or are copied.
func (b *fed) append(next *fed) {
	own := next.Own
	if own == len(next.Items) {
		own += b.Own
	}
	b.Batch = &ship.Batch{Since: b.Since, Before: b.Before, RevisionBefore: b.RevisionBefore,
		Items: append(b.Items, next.Items...), Own: own}
	b.bytes += next.bytes
}

func (b *fed) first() consensus.Index { return b.Items[0].Entry.Index }
func (b *fed) last() consensus.Index  { return b.Items[len(b.Items)-1].Entry.Index }

// after returns the part after an entry, which is none of the last. A caller that appends to it gets a copy.
func (b *fed) after(index consensus.Index) *ship.Batch {
	if index < b.first() {
		part := *b.Batch
		part.Items = slices.Clip(part.Items)
		return &part
	}
	n := index - b.first() + 1
	return &ship.Batch{Since: b.Since, Before: b.Items[n-1].Sum, RevisionBefore: b.Items[n-1].Revision,
		Items: slices.Clip(b.Items[n:]), Own: min(b.Own, int(b.last()-index))}
}

func bytesOf(b *ship.Batch) (bytes int64) {
	for i := range b.Items {
		bytes += int64(b.Items[i].Entry.SizeBytes())
	}
	return bytes
}

// More returns a channel that is closed when more was applied, or other entries are kept.
func (f *Feed) More() <-chan struct{} { return f.changed.Next() }

// After returns batches of the first entries that are left after one, some MiB at most: none if there are none. A batch that
// begins before is cut. Batches with a later policy than that of a generation are left out: entries since then are for the
// recipients of that policy alone.
func (f *Feed) After(index consensus.Index, generation uint64) (batches []*ship.Batch) {
	for _, b := range f.some(index, generation) {
		batches = append(batches, b.after(index))
	}
	return batches
}

// some returns batches that are kept now. The applier waits for no more than that they are found, and some are copied.
func (f *Feed) some(index consensus.Index, generation uint64) []fed {
	f.mu.Lock()
	defer f.mu.Unlock()
	begin, bytes := f.find(index), int64(0)
	if begin < len(f.batches) && f.batches[begin].last() == index {
		begin++
	}
	end := begin
	for end < len(f.batches) && f.batches[end].generation <= generation && end-begin < afterBatches && bytes < afterBytes {
		bytes += f.batches[end].bytes
		end++
	}
	return slices.Clone(f.batches[begin:end])
}

// find returns the number of the first batch that ends at an entry or later. Batches have no hole between them.
func (f *Feed) find(index consensus.Index) int {
	return sort.Search(len(f.batches), func(i int) bool { return f.batches[i].last() >= index })
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
	at := f.find(index)
	switch {
	case at == len(f.batches):
		return 0, false
	case index+1 == f.batches[at].first(): // at is the first: the others begin where one ends
		return f.batches[at].Before, true
	case index < f.batches[at].first():
		return 0, false
	}
	b := &f.batches[at]
	return b.Items[index-b.first()].Sum, true
}
