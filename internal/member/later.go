package member

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/level"
	"github.com/quorate/quorate/internal/linked"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/proposals"
)

// laters are the commands and reads that no goroutine waits for, in the order in which they came, which is that of their
// timeouts.
type laters struct {
	mu     sync.Mutex
	open   linked.List[later]
	sweeps bool // a timer is running
}

// later is a command, or a read, that tells somebody once how it ended.
type later struct {
	requests *requests
	proposal *proposals.Pending // nil until it was queued, and of a read
	reader   *node.Reader       // nil: a command
	done     proposals.Completion
	settled  atomic.Bool
	begun    time.Time
	place    linked.Place[later]
}

// laterSweep is how often overdue commands are looked for.
const laterSweep = 250 * time.Millisecond

// commandThen is command for who does not wait: see Member.ProposeThen.
func (r *requests) commandThen(command *kv.Command, done proposals.Completion) (abandon func() bool, err error) {
	if !r.isOpen() {
		return nil, ErrTimeout
	}
	if err := r.superseded(); err != nil {
		return nil, err
	}
	payload := command.Append(nil)
	if needs, _ := kv.Needs(payload); needs > level.First {
		return nil, errNeedsLevel
	}
	if r.maxBytes > 0 && len(payload) > r.maxBytes {
		return nil, ErrTooLarge
	}
	l := &later{requests: r, done: done, begun: r.clock.Now()}
	r.enter(l)
	q, err := r.loop.Proposals().Add(consensus.EntryCommand, payload, l)
	if err != nil {
		l.settle()
		return nil, err
	}
	r.later.mu.Lock()
	l.proposal = q
	r.later.mu.Unlock()
	r.wake()
	return l.abandon, nil
}

// readThen is readIndex for who does not wait: see Member.ReadThen.
func (r *requests) readThen(done proposals.Completion) (abandon func() bool, err error) {
	if !r.isOpen() {
		return nil, ErrTimeout
	}
	if err := r.superseded(); err != nil {
		return nil, err
	}
	l := &later{requests: r, done: done, begun: r.clock.Now(), reader: &node.Reader{}}
	l.reader.To = l
	r.enter(l)
	r.loop.AddReader(l.reader)
	r.wake()
	return l.abandon, nil
}

var errNeedsLevel = errors.New("member: ProposeThen does not wait for a feature level")

func (r *requests) enter(l *later) {
	r.later.mu.Lock()
	defer r.later.mu.Unlock()
	r.later.open.PushBack(&l.place, l)
	if !r.later.sweeps {
		r.later.sweeps = true
		time.AfterFunc(laterSweep, r.sweep)
	}
}

// settle reports whether nobody was told yet, and takes it out.
func (l *later) settle() bool {
	if l.settled.Swap(true) {
		return false
	}
	l.requests.later.mu.Lock()
	l.place.Remove()
	l.requests.later.mu.Unlock()
	return true
}

// Complete implements proposals.Completion.
func (l *later) Complete(result kv.Result, err error) {
	if l.settle() {
		l.done.Complete(result, err)
	}
}

// Shown is told of a read: the state here shows what it has to.
func (l *later) Shown() { l.Complete(kv.Result{}, nil) }

// abandon reports whether nobody was told, and will not be.
func (l *later) abandon() bool {
	if !l.settle() {
		return false
	}
	if l.reader != nil {
		l.requests.loop.DropReader(l.reader)
	} else {
		l.requests.loop.Proposals().Abandon(l.proposal)
	}
	return true
}

// sweep ends what has waited too long.
func (r *requests) sweep() {
	for {
		l, q := r.overdue()
		if l == nil {
			return
		}
		r.expire(l, q)
	}
}

// overdue returns what has waited longest, if that is too long; else it sees to the next sweep.
func (r *requests) overdue() (*later, *proposals.Pending) {
	r.later.mu.Lock()
	defer r.later.mu.Unlock()
	l := r.later.open.First()
	switch {
	case l == nil:
		r.later.sweeps = false
		return nil, nil
	case r.stopping.Err() == nil && r.clock.Now().Sub(l.begun) < r.timeout:
		time.AfterFunc(laterSweep, r.sweep)
		return nil, nil
	}
	return l, l.proposal
}

func (r *requests) expire(l *later, q *proposals.Pending) {
	if !l.settle() {
		return
	}
	err := r.timeoutError(l.begun)
	if r.stopping.Err() != nil {
		err = ErrStopped
	}
	if l.reader != nil {
		r.loop.DropReader(l.reader)
	}
	if q != nil {
		if r.loop.Proposals().Sent(q) && errors.Is(err, ErrNoLeader) {
			err = ErrLeaderFailed // it left for a leader that is gone since, so it may still happen
		}
		r.loop.Proposals().Abandon(q)
	}
	l.done.Complete(kv.Result{}, err)
}
