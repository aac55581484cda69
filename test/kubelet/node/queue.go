package node

import "sync"

// A queue holds functions for a worker, in the order in which they came.
type queue struct {
	mu      sync.Mutex
	waiting []func()
	some    chan struct{} // has a value if some wait
}

func newQueue() *queue { return &queue{some: make(chan struct{}, 1)} }

func (q *queue) put(f func()) {
	q.mu.Lock()
	q.waiting = append(q.waiting, f)
	q.mu.Unlock()
	select {
	case q.some <- struct{}{}:
	default:
	}
}

func (q *queue) take() []func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	return all
}
