package admission

import (
	"context"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/linked"
)

// HostTurns lets one call run at a time. Those that wait run in the order of arrival, and those of several hosts in turn: a
// host with many waits for its own.
type HostTurns struct {
	limit, hostLimit int

	mu      sync.Mutex
	in      int // that run or wait
	running bool
	hosts   map[string]*hostTurns
	queue   linked.List[hostTurns] // hosts of which calls wait, whose turn is next comes first
	refused uint64
}

type hostTurns struct {
	in      int
	waiting []chan struct{} // closed when the call may run
	place   linked.Place[hostTurns]
}

// NewHostTurns returns HostTurns of which at most limit calls run or wait, and hostLimit of one host.
func NewHostTurns(limit, hostLimit int) *HostTurns {
	return &HostTurns{limit: limit, hostLimit: hostLimit, hosts: make(map[string]*hostTurns)}
}

// Enter waits for a turn of a call of host; leave ends it and must be called once. The error is ErrQueueFull, or that of ctx.
func (t *HostTurns) Enter(ctx context.Context, host string) (leave func(), err error) {
	leave = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.leave(host)
		t.running = false
		t.next()
	}
	t.mu.Lock()
	h := t.hosts[host]
	if h == nil {
		h = &hostTurns{}
	}
	if t.in >= t.limit || h.in >= t.hostLimit {
		t.refused++
		t.mu.Unlock()
		return nil, ErrQueueFull
	}
	t.hosts[host] = h
	t.in++
	h.in++
	turn := make(chan struct{})
	if len(h.waiting) == 0 {
		t.queue.PushBack(&h.place, h)
	}
	h.waiting = append(h.waiting, turn)
	t.next()
	t.mu.Unlock()
	select {
	case <-turn:
		return leave, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(h.waiting, turn)
	if at < 0 { // its turn has come at this moment
		return leave, nil
	}
	if h.waiting = slices.Delete(h.waiting, at, at+1); len(h.waiting) == 0 {
		h.place.Remove()
	}
	t.leave(host)
	return nil, ctx.Err()
}

// leave forgets a call. mu is held.
func (t *HostTurns) leave(host string) {
	t.in--
	h := t.hosts[host]
	if h.in--; h.in == 0 {
		delete(t.hosts, host)
	}
}

// next gives the turn to the next call, unless one runs. mu is held.
func (t *HostTurns) next() {
	h := t.queue.First()
	if t.running || h == nil {
		return
	}
	t.running = true
	close(h.waiting[0])
	h.waiting = slices.Delete(h.waiting, 0, 1)
	h.place.Remove()
	if len(h.waiting) > 0 {
		t.queue.PushBack(&h.place, h)
	}
}

// Counts returns how many run or wait, and how many have been refused so far.
func (t *HostTurns) Counts() (in int, refused uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in, t.refused
}
