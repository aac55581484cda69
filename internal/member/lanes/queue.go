package lanes

import "sync"

// Queue is a list to which many goroutines append, and which one lane takes as a whole.
type Queue[T any] struct {
	mu    sync.Mutex
	items []T
	turn  func() // asks for a turn of the lane; nil: the lane looks by itself
}

// Put appends items and asks for a turn of the lane.
func (q *Queue[T]) Put(items ...T) {
	q.mu.Lock()
	q.items = append(q.items, items...)
	q.mu.Unlock()
	if q.turn != nil {
		q.turn()
	}
}

// Len is the number of queued items.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// Take returns all queued items, and gives the queue the slice spare to fill next.
func (q *Queue[T]) Take(spare []T) []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.items
	clear(spare)
	q.items = spare[:0]
	return taken
}
