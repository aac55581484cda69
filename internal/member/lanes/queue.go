package lanes

import "sync"

// Queue is a list that one lane empties at once and many fill.
type Queue[T any] struct {
	mu    sync.Mutex
	items []T
	turn  func() // has the lane take what waits; nil: it looks by itself
}

// Put leaves something for the lane.
func (q *Queue[T]) Put(items ...T) {
	q.mu.Lock()
	q.items = append(q.items, items...)
	q.mu.Unlock()
	if q.turn != nil {
		q.turn()
	}
}

// Len is how much waits.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// Take returns everything that waits and hands the queue spare to fill next.
func (q *Queue[T]) Take(spare []T) []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.items
	clear(spare)
	q.items = spare[:0]
	return taken
}
