package admission

import (
	"context"
	"errors"
	"sync"
)

// ErrQueueFull is what Queue.Enter returns if too many calls wait.
var ErrQueueFull = errors.New("admission: too many wait")

// Queue limits how many calls of one kind run at once, and how many wait for their turn.
type Queue struct {
	slots      chan struct{}
	maxWaiting int

	mu      sync.Mutex
	waiting int
	refused uint64
}

// NewQueue returns a queue in which at most atOnce calls run and maxWaiting wait.
func NewQueue(atOnce, maxWaiting int) *Queue {
	return &Queue{slots: make(chan struct{}, atOnce), maxWaiting: maxWaiting}
}

// Enter waits for a turn; leave ends it and must be called once.
func (q *Queue) Enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-q.slots }
	select {
	case q.slots <- struct{}{}:
		return leave, nil
	default:
	}
	if !q.startWaiting() {
		return nil, ErrQueueFull
	}
	defer q.stopWaiting()
	select {
	case q.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q *Queue) startWaiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting >= q.maxWaiting {
		q.refused++
		return false
	}
	q.waiting++
	return true
}

func (q *Queue) stopWaiting() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
}

// Counts returns how many run, and how many have been refused so far.
func (q *Queue) Counts() (running int, refused uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.slots), q.refused
}
