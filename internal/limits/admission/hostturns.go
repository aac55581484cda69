package admission

import (
	"context"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/base/linked"
)

// HostTurns lets calls run as long as they weigh no more together than they may, and one in any case. Those that wait run in
// the order of arrival, and those of several hosts in turn: a host with many waits for its own.
type HostTurns struct {
	weight, share    int64 // share: of what runs of one host
	limit, hostLimit int

	mu      sync.Mutex
	in      int   // that run or wait
	running int   // of them
	weighs  int64 // what runs
	hosts   map[string]*hostTurns
	queue   linked.List[hostTurns] // hosts of which calls wait, but for those that have their share; the next one comes first
	refused uint64
}

type hostTurns struct {
	in      int
	weighs  int64 // what runs of it
	waiting []*turn
	place   linked.Place[hostTurns]
}

// turn is one call that waits. comes is closed when it may run.
type turn struct {
	weight int64
	comes  chan struct{}
}

// NewHostTurns returns HostTurns for calls that weigh so much together, of which at most limit run or wait, and hostLimit of
// one host.
func NewHostTurns(weight int64, limit, hostLimit int) *HostTurns {
	return &HostTurns{weight: weight, share: weight, limit: limit, hostLimit: hostLimit, hosts: make(map[string]*hostTurns)}
}

// Share lets calls of one host run only as long as they weigh no more together than its share, and one in any case: calls that
// run for long leave room for others. It must be called before Enter.
func (t *HostTurns) Share(weight int64) *HostTurns {
	t.share = weight
	return t
}

// Enter waits for a turn of a call of host that weighs so much; leave ends it and must be called once. The error is
// ErrQueueFull, or that of ctx.
func (t *HostTurns) Enter(ctx context.Context, host string, weight int64) (leave func(), err error) {
	leave = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.running--
		t.weighs -= weight
		h := t.hosts[host]
		if h.weighs -= weight; len(h.waiting) > 0 && h.place.List() == nil { // it had its share
			t.queue.PushBack(&h.place, h)
		}
		t.leave(host)
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
	own := &turn{weight, make(chan struct{})}
	if len(h.waiting) == 0 {
		t.queue.PushBack(&h.place, h)
	}
	h.waiting = append(h.waiting, own)
	t.next()
	t.mu.Unlock()
	select {
	case <-own.comes:
		return leave, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(h.waiting, own)
	if at < 0 { // its turn has come at this moment
		return leave, nil
	}
	if h.waiting = slices.Delete(h.waiting, at, at+1); len(h.waiting) == 0 {
		h.place.Remove()
	}
	t.leave(host)
	return nil, ctx.Err()
}

// leave forgets a call, and lets others run. mu is held.
func (t *HostTurns) leave(host string) {
	t.in--
	h := t.hosts[host]
	if h.in--; h.in == 0 {
		delete(t.hosts, host)
	}
	t.next()
}

// next gives turns to the next calls, as far as they may run. mu is held.
func (t *HostTurns) next() {
	for h := t.queue.First(); h != nil; h = t.queue.First() {
		next := h.waiting[0]
		if t.running > 0 && t.weighs+next.weight > t.weight {
			return
		}
		if h.weighs > 0 && h.weighs+next.weight > t.share { // it comes back when one of its calls ends
			h.place.Remove()
			continue
		}
		t.running++
		t.weighs += next.weight
		h.weighs += next.weight
		close(next.comes)
		h.waiting = slices.Delete(h.waiting, 0, 1)
		h.place.Remove()
		if len(h.waiting) > 0 {
			t.queue.PushBack(&h.place, h)
		}
	}
}

// Counts returns how many run or wait, and how many have been refused so far.
func (t *HostTurns) Counts() (in int, refused uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in, t.refused
}
