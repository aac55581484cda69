package lease

import (
	"slices"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// dueItem asks to look at a lease at a time that is not after its deadline. There is one for each lease that counts
// down. A renewal does not touch it, which keeps keep-alives at the cost of one map look-up; Expired moves it on when
// it comes to the top too early.
type dueItem struct {
	at    time.Time
	lease *lease
}

// dueHeap is a binary heap, the earliest first; equal times go by id, so that the order is the same in every run.
type dueHeap []dueItem

func (h dueHeap) less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].lease.id < h[j].lease.id
	}
	return h[i].at.Before(h[j].at)
}

func (h dueHeap) build() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// minDueSwept is how many items of revoked leases are left alone: fewer are not worth a sweep.
const minDueSwept = 64

// sweep drops the items of revoked leases.
func (h *dueHeap) sweep() {
	*h = slices.DeleteFunc(*h, func(item dueItem) bool { return item.lease.revoked })
	h.build()
}

func (h *dueHeap) push(item dueItem) {
	*h = append(*h, item)
	for i := len(*h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		(*h)[i], (*h)[parent] = (*h)[parent], (*h)[i]
		i = parent
	}
}

func (h *dueHeap) pop() {
	last := len(*h) - 1
	(*h)[0] = (*h)[last]
	(*h)[last] = dueItem{}
	*h = (*h)[:last]
	h.down(0)
}

func (h dueHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// sorted is the set of lease ids. It is put in order when somebody asks, so that grants and revocations stay cheap;
// revoked ids are dropped then.
type sorted struct {
	list  []kv.LeaseID
	gone  map[kv.LeaseID]struct{}
	dirty bool
}

func (s *sorted) add(id kv.LeaseID) {
	if _, ok := s.gone[id]; ok {
		delete(s.gone, id) // it still stands in the list
		return
	}
	s.list = append(s.list, id)
	s.dirty = true
}

func (s *sorted) remove(id kv.LeaseID) {
	if s.gone == nil {
		s.gone = map[kv.LeaseID]struct{}{}
	}
	s.gone[id] = struct{}{}
	if len(s.gone) > len(s.list)/2 { // so that leases that come and go do not pile up
		s.sweep()
	}
}

func (s *sorted) sweep() {
	s.list = slices.DeleteFunc(s.list, func(id kv.LeaseID) bool {
		_, gone := s.gone[id]
		return gone
	})
	clear(s.gone)
}

func (s *sorted) ids() []kv.LeaseID {
	if len(s.gone) > 0 {
		s.sweep()
	}
	if s.dirty {
		slices.Sort(s.list)
		s.dirty = false
	}
	return s.list
}
