package watch

import (
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/linked"
)

const (
	// maxReads is how many streams of a client make a step of catch-up at once: what a step reads is not counted before it is
	// given to them.
	maxReads = 8
	// maxOverdrafts is how many streams of a client may have a revision in memory that is larger than what their step may take:
	// leastCatchUpBytes, if nothing is left in the account. While something is left, as many more may.
	maxOverdrafts = 8
)

// overdrafts decide which streams may be given a revision that is larger than what is left. A revision is not cut, so that
// some stream must be; but a client with many streams that reads none of them must not fill the memory with one for each.
type overdrafts struct {
	options *Options
	queued  atomic.Int64 // streams that wait for one, of all accounts

	mu       sync.Mutex           // taken after all others
	accounts linked.List[account] // that have such streams
}

// overdraft is what a stream knows of its own. It is written with overdrafts.mu.
type overdraft struct {
	held   atomic.Bool
	queued atomic.Bool
	place  linked.Place[Stream] // in account.queued
}

// take reports whether s has an overdraft. If not, s is woken when it has.
func (o *overdrafts) take(s *Stream) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := s.account
	switch {
	case s.overdraft.held.Load():
		return true
	case s.overdraft.queued.Load():
		return false
	case a.queued.Len() == 0 && o.grant(s):
		return true
	}
	if a.queued.Len() == 0 {
		o.accounts.PushBack(&a.place, a)
	}
	a.queued.PushBack(&s.overdraft.place, s)
	s.overdraft.queued.Store(true)
	o.queued.Add(1)
	return false
}

// grant gives s an overdraft if there is one. mu is held.
func (o *overdrafts) grant(s *Stream) bool {
	most := maxOverdrafts
	if s.account.free(o.options) > 0 {
		most *= 2
	}
	if s.account.overdrafts >= most {
		return false
	}
	s.account.overdrafts++
	s.overdraft.held.Store(true)
	return true
}

// settle takes the overdraft of s back, once s has no more in memory than it may have without.
func (o *overdrafts) settle(s *Stream, bytes int) {
	if s.overdraft.held.Load() && (bytes <= o.options.leastBytes() || s.account.free(o.options) > 0) {
		o.leave(s)
	}
}

// leave takes the overdraft of s back, or its place among those that wait.
func (o *overdrafts) leave(s *Stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.overdraft.held.Swap(false) {
		s.account.overdrafts--
	}
	if s.overdraft.queued.Load() {
		o.unqueue(s)
	}
	o.next()
}

// freed is called when bytes of any account were given back.
func (o *overdrafts) freed() {
	if o.queued.Load() == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next()
}

// next gives overdrafts to streams that wait. mu is held.
func (o *overdrafts) next() {
	for a := o.accounts.First(); a != nil; {
		following := a.place.Next()
		for s := a.queued.First(); s != nil && o.grant(s); s = a.queued.First() {
			o.unqueue(s)
			s.signal()
		}
		a = following
	}
}

func (o *overdrafts) unqueue(s *Stream) {
	s.overdraft.place.Remove()
	s.overdraft.queued.Store(false)
	o.queued.Add(-1)
	if s.account.queued.Len() == 0 {
		s.account.place.Remove()
	}
}
