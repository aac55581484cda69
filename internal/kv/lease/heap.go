package lease

import "time"

// dueItem is the time to check a lease, at or before its deadline. There is one for each lease that counts down. A renewal does
// not change it, so that a keep-alive costs one map look-up; Expired moves it on when it comes to the top too early.
type dueItem struct {
	at    time.Time
	lease *lease
}

// dueHeap is a binary heap, the earliest first; equal times go by id, so that the order is the same in every run. Each
// lease knows its place, so that a revocation takes its item out at once.
type dueHeap struct{ items pages[dueItem] }

func (h *dueHeap) length() int { return h.items.length() }

func (h *dueHeap) at(i int) *dueItem { return h.items.at(i) }

func (h *dueHeap) less(i, j int) bool {
	a, b := h.at(i), h.at(j)
	if a.at.Equal(b.at) {
		return a.lease.id < b.lease.id
	}
	return a.at.Before(b.at)
}

func (h *dueHeap) swap(i, j int) {
	a, b := h.at(i), h.at(j)
	*a, *b = *b, *a
	a.lease.place, b.lease.place = i, j
}

func (h *dueHeap) push(item dueItem) {
	item.lease.place = h.length()
	h.items.push(item)
	h.up(h.length() - 1)
}

func (h *dueHeap) remove(at int) {
	last := h.length() - 1
	h.swap(at, last)
	h.at(last).lease.place = notDue
	h.items.pop()
	if at < last {
		h.down(at)
		h.up(at)
	}
}

func (h *dueHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *dueHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= h.length() {
			return
		}
		if child+1 < h.length() && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
