package routines

import "iter"

// Wait makes a routine wait until resume is called, in a later event or at once. It returns false if the routine was ended.
type Wait func(begin func(resume func())) bool

// Set is the routines of a world. The zero value is ready.
type Set struct{ open map[*routine]bool }

type routine struct {
	all  *Set
	next func() (func(func()), bool)
	stop func()
	turn int
	over bool
}

// Go runs f until it waits for the first time. end ends it at its wait; f itself must not call end.
func (all *Set) Go(f func(wait Wait)) (end func()) {
	r := &routine{all: all}
	r.next, r.stop = iter.Pull(func(yield func(func(func())) bool) { f(yield) })
	if all.open == nil {
		all.open = map[*routine]bool{}
	}
	all.open[r] = true
	r.goOn()
	return r.end
}

// End ends all routines.
func (all *Set) End() {
	for r := range all.open { // in any order: nothing happens any more
		r.end()
	}
}

func (r *routine) goOn() {
	begin, waits := r.next()
	if !waits {
		r.over = true
		delete(r.all.open, r)
		return
	}
	r.turn++
	turn := r.turn
	begin(func() {
		if !r.over && r.turn == turn {
			r.goOn()
		}
	})
}

func (r *routine) end() {
	if r.over {
		return
	}
	r.over = true
	delete(r.all.open, r)
	r.stop()
}

// Lock lets one routine at a time through. The zero value is open.
type Lock struct {
	taken bool
	queue []func()
}

// Of returns the lock as one routine sees it. A routine that was ended does not get the lock any more, and goes on without it.
func (l *Lock) Of(wait Wait) *Turn { return &Turn{lock: l, wait: wait} }

// Turn is a Lock in one routine: a sync.Locker.
type Turn struct {
	lock *Lock
	wait Wait
	has  bool
}

// Lock waits for the lock.
func (t *Turn) Lock() {
	for t.lock.taken {
		if !t.wait(func(resume func()) { t.lock.queue = append(t.lock.queue, resume) }) {
			return
		}
	}
	t.lock.taken, t.has = true, true
}

// Unlock releases the lock.
func (t *Turn) Unlock() {
	if !t.has {
		return
	}
	queue := t.lock.queue
	t.lock.taken, t.lock.queue, t.has = false, nil, false
	for _, resume := range queue {
		resume()
	}
}
