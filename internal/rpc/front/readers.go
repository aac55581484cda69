package front

import (
	"sync"
	"time"
)

const (
	// readBatch is how many answers to a connection wait for each other at most before they are written.
	readBatch = 16
	// maxReaders is how many goroutines finish calls while disks are slow.
	maxReaders = 1024
	// readerStall is for how long no goroutine may have taken a call before another goroutine begins.
	readerStall = time.Millisecond
)

// promptCall is a *Call.
type promptCall interface {
	finish()
	flush()
	conn() any
}

// readers finish calls that may wait for a disk: more goroutines do it while those that do it wait. A call that waits holds up
// only calls of the same connection, for which it is not worth a write each.
type readers struct {
	mu      sync.Mutex
	more    sync.Cond    // of those that stay
	queue   []promptCall // from head on
	head    int
	working int // goroutines that do not wait for calls
	idle    int // goroutines that do
	taken   time.Time
	stopped bool
	running *sync.WaitGroup
}

// start begins with so many goroutines, which stay while there is nothing to do.
func (r *readers) start(stay int, running *sync.WaitGroup) {
	r.more.L, r.running, r.working = &r.mu, running, stay
	for range stay {
		running.Go(func() { r.run(true) })
	}
}

func (r *readers) stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.more.Broadcast()
}

func (r *readers) push(c promptCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, c)
	switch {
	case r.stopped:
	case r.idle > 0:
		if len(r.queue)-r.head == 1 {
			r.more.Signal()
		}
	case r.working < maxReaders && time.Since(r.taken) > readerStall:
		r.working++
		r.taken = time.Now()
		r.running.Go(func() { r.run(false) })
	}
}

func (r *readers) run(stays bool) {
	var last promptCall // its answer is not written yet
	unwritten := 0
	for {
		c := r.take(last, unwritten)
		if c == nil && last != nil {
			last.flush()
			last, unwritten = nil, 0
			continue
		}
		if c == nil {
			if c = r.await(stays); c == nil {
				return
			}
		}
		c.finish()
		last = c
		unwritten++
	}
}

// take returns a call that can be finished before the last one's answer is written, or any if there is none.
func (r *readers) take(last promptCall, unwritten int) promptCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.head == len(r.queue) || last != nil && (unwritten == readBatch || r.queue[r.head].conn() != last.conn()) {
		return nil
	}
	return r.pop()
}

// await waits for a call; nil: the goroutine ends.
func (r *readers) await(stays bool) promptCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.working--
	for r.head == len(r.queue) {
		if r.stopped || !stays {
			return nil
		}
		r.idle++
		r.more.Wait()
		r.idle--
	}
	r.working++
	return r.pop()
}

func (r *readers) pop() promptCall {
	c := r.queue[r.head]
	r.queue[r.head] = nil
	if r.head++; r.head >= len(r.queue)-r.head { // half of it is free, or all
		left := copy(r.queue, r.queue[r.head:])
		clear(r.queue[left:])
		r.queue, r.head = r.queue[:left], 0
	}
	if len(r.queue) > 0 && r.idle > 0 {
		r.more.Signal()
	}
	r.taken = time.Now()
	return c
}
