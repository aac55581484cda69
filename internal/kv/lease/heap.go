package lease

import "time"

// dueItem asks to look at a lease at a time that is not after its deadline. There is one for each lease that counts
// down. A renewal does not touch it, which keeps keep-alives at the cost of one map look-up; Expired moves it on when
// it comes to the top too early.
type dueItem struct {
	at    time.Time
	lease *lease
}

// dueHeap is a binary heap, the earliest first; equal times go by id, so that the order is the same in every run. Each
// lease knows its place, so that a revocation takes its item out at once.
type dueHeap []dueItem

func (h dueHeap) less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].lease.id < h[j].lease.id
	}
	return h[i].at.Before(h[j].at)
}

func (h dueHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].lease.place, h[j].lease.place = i, j
}

func (h *dueHeap) push(item dueItem) {
	item.lease.place = len(*h)
	*h = append(*h, item)
	h.up(len(*h) - 1)
}

func (h *dueHeap) remove(at int) {
	last := len(*h) - 1
	h.swap(at, last)
	(*h)[last].lease.place = notDue
	(*h)[last] = dueItem{}
	*h = (*h)[:last]
	if at < last {
		h.down(at)
		h.up(at)
	}
}

func (h dueHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
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
		h.swap(i, child)
		i = child
	}
}
