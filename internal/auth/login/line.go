package login

import (
	"context"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/limits/admission"
)

// maxWaiting bounds how many passwords wait in each line. At etcd's default cost one takes about a tenth of a second.
const maxWaiting = 64

// line is where calls wait until their password can be hashed. Hosts take turns, so that a host that asks for one waits for one
// of each other host, however many those ask for.
type line struct {
	places *admission.HostBound // calls that hash or wait

	mu    sync.Mutex
	slots int // hashes that are computed at most
	busy  int
	hosts []*waiting // whose turn is next comes first; none is empty
}

// waiting are the calls of one host that wait, oldest first.
type waiting struct {
	host  string
	calls []chan struct{} // closed when it is their turn
}

// newLine makes a line of which one host may take hostPlaces.
func newLine(slots, hostPlaces int) *line {
	return &line{slots: slots, places: admission.NewHostBound(slots+maxWaiting, hostPlaces)}
}

// enter waits for a slot; leave gives it back and must be called once.
func (l *line) enter(ctx context.Context) (leave func(), err error) {
	host := admission.CallerOf(ctx).Host
	leavePlace, entered := l.places.Enter(host)
	if !entered {
		return nil, ErrBusy
	}
	if err = ctx.Err(); err == nil {
		err = l.wait(ctx, host)
	}
	if err != nil {
		leavePlace()
		return nil, err
	}
	return func() { l.next(); leavePlace() }, nil
}

func (l *line) wait(ctx context.Context, host string) error {
	turn := l.join(host)
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		if !l.forget(host, turn) { // it had its turn just now
			l.next()
		}
		return ctx.Err()
	}
}

// join returns what is closed when a call of host has its turn.
func (l *line) join(host string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	turn := make(chan struct{})
	if l.busy < l.slots {
		l.busy++
		close(turn)
		return turn
	}
	at := slices.IndexFunc(l.hosts, func(w *waiting) bool { return w.host == host })
	if at < 0 {
		at = len(l.hosts)
		l.hosts = append(l.hosts, &waiting{host: host})
	}
	l.hosts[at].calls = append(l.hosts[at].calls, turn)
	return turn
}

// next gives a slot that is free to a call of the host whose turn it is.
func (l *line) next() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.hosts) == 0 {
		l.busy--
		return
	}
	first := l.hosts[0]
	close(first.calls[0])
	first.calls = first.calls[1:]
	if l.hosts = slices.Delete(l.hosts, 0, 1); len(first.calls) > 0 {
		l.hosts = append(l.hosts, first)
	}
}

// forget takes a call out that waits, and reports whether it waited.
func (l *line) forget(host string, turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.hosts {
		at := slices.Index(w.calls, turn)
		if w.host != host || at < 0 {
			continue
		}
		if w.calls = slices.Delete(w.calls, at, at+1); len(w.calls) == 0 {
			l.hosts = slices.Delete(l.hosts, i, i+1)
		}
		return true
	}
	return false
}

func (l *line) counts() (hashing, waits int, refused uint64) {
	open, refused := l.places.Counts()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy, max(open-l.busy, 0), refused
}
