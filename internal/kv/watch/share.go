package watch

import (
	"bytes"
	"slices"
	"sort"

	"github.com/quorate/quorate/internal/kv"
)

// sharer makes the batches of a chunk. Watchers of equal interest share one if they stand at the same revision, as they do
// after a burst that overran a stream.
type sharer struct {
	events byKey
	upTo   kv.Revision
	made   map[interestAt]*Batch
	bytes  int // of all batches
}

type interestAt struct {
	interest interest
	next     kv.Revision
}

// batch returns what a watcher has to see of the chunk, nil if that is nothing.
func (s *sharer) batch(w *watcher) *Batch {
	at := interestAt{interest: w.interest, next: w.next}
	if batch, ok := s.made[at]; ok {
		s.count(batch, responseBytes)
		return batch
	}
	var batch *Batch
	if events := s.events.pick(&w.interest, w.next); len(events) > 0 {
		batch = newBatch(s.upTo, events, w.prevKV)
		s.count(batch, responseBytes+batch.sizeBytes)
	}
	s.made[at] = batch
	return batch
}

func (s *sharer) count(batch *Batch, bytes int) {
	if batch != nil {
		s.bytes += bytes
	}
}

// byKey finds the events of a range without looking at all of them.
type byKey struct {
	events []kv.Event
	order  []int32 // places in events, by key, then as they came
}

func indexByKey(events []kv.Event) byKey {
	b := byKey{events: events, order: make([]int32, len(events))}
	for i := range b.order {
		b.order[i] = int32(i)
	}
	slices.SortFunc(b.order, func(i, j int32) int {
		if c := bytes.Compare(events[i].KV.Key, events[j].KV.Key); c != 0 {
			return c
		}
		return int(i - j)
	})
	return b
}

// pick returns the events with a revision of at least from that in wants, in their order.
func (b *byKey) pick(in *interest, from kv.Revision) []kv.Event {
	at := sort.Search(len(b.order), func(i int) bool { return string(b.events[b.order[i]].KV.Key) >= in.start })
	var found []int32
	for ; at < len(b.order); at++ {
		ev := &b.events[b.order[at]]
		if !in.holds(ev.KV.Key) {
			break
		}
		if ev.KV.ModRevision >= from && in.takes(ev.Kind) {
			found = append(found, b.order[at])
		}
	}
	slices.Sort(found)
	var p picked
	for _, i := range found {
		p.add(b.events, int(i))
	}
	return p.list(b.events)
}
