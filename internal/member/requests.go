package member

import (
	"context"
	"errors"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/proposals"
)

// requests lets goroutines wait for the asynchronous requests of package lanes. Requests before Start wait for it.
type requests struct {
	*lanes.Requests
	self       consensus.MemberID
	stopping   context.Context
	superseded func() error
	levels     *levels
	started    chan struct{} // closed by open
	waiters    sync.Pool     // of *waiter
}

// open lets the requests continue that came before the end of Start.
func (r *requests) open() { close(r.started) }

// waiter is a Completion that a goroutine waits for.
type waiter struct {
	result kv.Result
	by     proposals.Passage
	err    error
	done   chan struct{}
}

// Complete implements proposals.Completion.
func (w *waiter) Complete(result kv.Result, err error) {
	w.result, w.err = result, err
	w.done <- struct{}{}
}

// CompleteAfter implements proposals.Passenger.
func (w *waiter) CompleteAfter(by proposals.Passage, result kv.Result, err error) {
	w.by = by
	w.Complete(result, err)
}

// wait begins a request and waits until it, ctx or the member ends.
func (r *requests) wait(
	ctx context.Context, begin func(done proposals.Completion) (abandon func() bool, err error),
) (result kv.Result, err error) {
	w, pooled := r.waiters.Get().(*waiter)
	if !pooled {
		w = &waiter{done: make(chan struct{}, 1)}
	}
	abandon, err := begin(w)
	if err != nil {
		return kv.Result{}, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-r.stopping.Done():
		err = ErrStopped
	}
	if err == nil || !abandon() {
		if err != nil {
			<-w.done // it is just being completed
		}
		notePassage(ctx, w.by)
		result, err = w.result, w.err
	}
	w.result, w.by, w.err = kv.Result{}, proposals.Passage{}, nil
	r.waiters.Put(w)
	return result, err
}

// command replicates a command and returns the result of applying it: see Member.Propose.
func (r *requests) command(ctx context.Context, command *kv.Command) (kv.Result, error) {
	if own := command.Publish; own != nil && own.Member == uint64(r.self) {
		own.Level = r.levels.stores.Latest().OwnLevel()
	}
	if err := r.awaitStart(ctx); err != nil {
		return kv.Result{}, err
	}
	for {
		result, err := r.wait(ctx, func(done proposals.Completion) (func() bool, error) { return r.Propose(command, done) })
		var held *lanes.NeedsLevelError
		if err == nil || !errors.As(err, &held) {
			return result, err
		}
		if err := r.levels.await(ctx, held.Needs); err != nil {
			return kv.Result{}, err
		}
	}
}

// propose replicates an entry and returns the result of applying it.
func (r *requests) propose(ctx context.Context, kind consensus.EntryKind, payload []byte) (kv.Result, error) {
	if err := r.awaitStart(ctx); err != nil {
		return kv.Result{}, err
	}
	return r.wait(ctx, func(done proposals.Completion) (func() bool, error) { return r.Start(kind, payload, done) })
}

// readIndex returns once the state applied here includes all writes that were acknowledged before the call.
func (r *requests) readIndex(ctx context.Context) error {
	if err := r.awaitStart(ctx); err != nil {
		return err
	}
	_, err := r.wait(ctx, r.Read)
	return err
}

// awaitStart makes a request wait for the end of Start. It returns an error while this member serves nothing.
func (r *requests) awaitStart(ctx context.Context) error {
	select {
	case <-r.started:
		return r.superseded()
	default:
	}
	select {
	case <-r.started:
		return r.superseded()
	case <-ctx.Done():
		return ctx.Err()
	case <-r.stopping.Done():
		return ErrStopped
	}
}

// await is command for a proposal that has an id already, and that propose queues. It has no other timeout than that of ctx.
func (r *requests) await(
	ctx context.Context, id consensus.ProposalID, propose func(done proposals.Completion) error,
) (kv.Result, error) {
	begun := r.Now()
	result, err := r.wait(ctx, func(done proposals.Completion) (func() bool, error) { return r.Expect(id, done, propose) })
	if errors.Is(err, context.DeadlineExceeded) {
		if err = r.TimeoutError(begun); errors.Is(err, ErrNoLeader) {
			err = ErrLeaderFailed // the proposal may have been sent to a leader that is gone since
		}
	}
	return result, err
}
