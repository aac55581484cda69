package front

import (
	"sync"
	"time"
)

const (
	// readBatch is how many calls a goroutine finishes before it writes their answers.
	readBatch = 16
	// maxReaders is how many goroutines finish calls while disks are slow.
	maxReaders = 64
	// readerStall is for how long nobody may have taken a call before another goroutine begins.
	readerStall = time.Millisecond
)

// hotCall is a *Call.
type hotCall interface {
	finish()
	flush()
}

// readers finish calls that may wait for a disk: more goroutines do it while those that do it wait.
type readers struct {
	mu      sync.Mutex
	more    sync.Cond // of those that stay
	queue   []hotCall
	head    int
	stay    int // goroutines that do not end while there is nothing to do
	working int // goroutines that finish calls
	idle    int // goroutines that wait for some
	taken   time.Time
	stopped bool
	running *sync.WaitGroup
}

func (r *readers) start(stay int, running *sync.WaitGroup) {
	r.more.L, r.stay, r.running = &r.mu, stay, running
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

func (r *readers) push(c hotCall) {
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
		r.running.Go(func() { r.run(false) })
		r.taken = time.Now()
	}
}

func (r *readers) run(stays bool) {
	var batch [readBatch]hotCall
	for {
		calls := r.take(&batch, stays)
		if len(calls) == 0 {
			return
		}
		for _, c := range calls {
			c.finish()
		}
		for _, c := range calls { // a connection that was flushed has nothing left
			c.flush()
		}
		clear(calls)
		r.mu.Lock()
		r.working--
		r.mu.Unlock()
	}
}

// take returns the calls to finish next; none: the goroutine ends.
func (r *readers) take(batch *[readBatch]hotCall, stays bool) []hotCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.head == len(r.queue) {
		if r.stopped || !stays {
			return nil
		}
		r.idle++
		r.more.Wait()
		r.idle--
	}
	n := copy(batch[:], r.queue[r.head:])
	clear(r.queue[r.head : r.head+n])
	if r.head += n; r.head == len(r.queue) {
		r.queue, r.head = r.queue[:0], 0
	} else if r.idle > 0 {
		r.more.Signal()
	}
	r.working++
	r.taken = time.Now()
	return batch[:n]
}
