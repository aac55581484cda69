package streams

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/clients"
)

// Go does what the message asks for, as far as it gets.
func (s *Stream) Go(ctx context.Context) Need {
	if s.waited { // meanwhile nothing was read of the client, which is not its fault
		s.waited = false
		s.all.options.Clients.KeepClient(s.owner.ID)
	}
	for {
		need, err := s.advance(ctx)
		if err != nil {
			s.clearReady() // none of these has a turn: Turned proposes such a command at once
			s.End(err)
			return Over
		}
		if need != goesOn {
			s.waited = need == Room
			return need
		}
	}
}

// advance does the next stage of a message. The error ends the stream.
func (s *Stream) advance(ctx context.Context) (Need, error) {
	switch s.stage {
	case arrived:
		return goesOn, s.arrive(ctx)
	case recording:
		if !s.roomForVerdicts() {
			return Room, nil
		}
		s.record(ctx)
		s.stage = recorded
		return s.offers(), nil
	case recorded:
		s.offer = termConfigOf(s.request)
		s.offer.Kind = consensus.MsgFastPropose
		s.stage = proposing
		return goesOn, nil
	case proposing:
		if s.at < len(s.request.Proposals) {
			return s.propose(ctx)
		}
		s.stage = finishing
		s.handOver()
		return s.offers(), nil
	default:
		s.finish()
		s.done()
		return Done, nil
	}
}

// arrive does what a message asks for beside its proposals and records.
func (s *Stream) arrive(ctx context.Context) error {
	request, options := s.request, &s.all.options
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over != nil {
		return over
	}
	if options.Member.Learner() { // since the stream began
		return rpctypes.ErrGRPCNotSupportedForLearner
	}
	// A client with a token that is over, or without one, is sent away. It comes back with another, and gets its answers.
	if err := options.Requests.Permit(ctx); err != nil {
		return options.Requests.Wire(err)
	}
	options.Clients.KeepClient(s.owner.ID)
	if request.Open != nil {
		if err := s.open(request.Open); err != nil {
			return err
		}
	}
	if len(request.Retire) > maxRetired {
		return errRetiring
	}
	for _, number := range request.Retire {
		if session := s.owner.Session(number); session.OfClient() {
			options.Clients.RetireClientSession(session)
		}
	}
	s.stage = proposing
	if request.TermConfig != nil {
		s.stage = recording
		return s.listen()
	}
	return nil
}

// open opens a session for the client, beside what it proposes under the others meanwhile.
func (s *Stream) open(r *quoratepb.OpenSession) error {
	last := s.owner.Session(r.Above)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opening || len(r.Keep) > maxKeptSessions || r.Above != 0 && !last.OfClient() || r.Above == math.MaxUint64 {
		return errOpening
	}
	s.opening = true
	s.driver.Open(r.Above, r.Keep)
	return nil
}

// finish ends a message. One that asks for nothing wants to hear something.
func (s *Stream) finish() {
	if r := s.request; r.Open == nil && r.TermConfig == nil && len(r.Proposals) == 0 {
		s.mu.Lock()
		s.asked, s.ping = true, r.Ping
		s.mu.Unlock()
		s.driver.Ready()
	}
	s.request = nil
}

// done gives back what the message took.
func (s *Stream) done() {
	if s.parts > 0 {
		s.mu.Lock()
		if !s.closed { // else the tab was closed, and has nothing to give back
			s.tab.Give(s.parts)
		}
		s.mu.Unlock()
		s.parts = 0
	}
}

// propose takes the next proposal. It is answered, or its command needs its turn.
func (s *Stream) propose(ctx context.Context) (Need, error) {
	if s.urgent { // the check of the next one may take long
		s.urgent = false
		if need := s.offers(); need != goesOn {
			return need, nil
		}
	}
	r := s.request.Proposals[s.at]
	if s.one == nil {
		s.one = &proposal{
			stream: s, id: s.owner.Proposal(r.Session, r.Sequence), kind: r.Kind, bytes: len(r.Request),
		}
	}
	need := goesOn
	if !s.one.entered {
		need = s.enter(s.one)
	}
	if need == goesOn {
		if s.command = s.judge(ctx, r, s.one); s.command == nil {
			s.one = nil
			s.at++
			return goesOn, nil
		}
		need = s.holdParts(s.one, commandBytes(s.command))
	}
	switch need {
	case Over:
		return Over, context.Canceled
	case Room: // it comes of answers, also of those to what this message began with
		s.command, s.one.command = nil, nil // it is read again when there is room for its parts
		s.handOver()
		return cmp.Or(s.offers(), Room), nil
	}
	return Turn, nil
}

// judge decides about a proposal that has entered. No command means that it is answered.
func (s *Stream) judge(ctx context.Context, r *quoratepb.Proposal, one *proposal) *kv.Command {
	if err := s.all.checkName(one.id); err != nil {
		one.refuse(err)
		return nil
	}
	full := s.all.room(one.id)
	if full != nil && !r.Again {
		one.refuse(full)
		return nil
	}
	command, err := s.all.admit(ctx, r, Asked{ID: one.id, Passed: one.passed})
	one.passed = err == nil
	if err == nil && kv.AsksForPairs(command) { // nothing is read for a request that was not admitted
		one.command = command
	}
	if r.Again && !errors.Is(err, ErrDenied) {
		if result, found := s.all.options.Clients.FirstResult(one.id); found {
			one.Complete(result, nil)
			return nil
		}
	}
	switch {
	case r.Again && errors.Is(err, ErrNoRoom), err == nil && full != nil && !s.all.options.Clients.Awaits(one.id):
		// This member does not know of a first attempt. If there was one, its result will be kept: this is no refusal.
		one.Complete(kv.Result{}, cmp.Or(err, full))
		return nil
	case err != nil:
		one.refuse(err)
		return nil
	}
	return command
}

// Turning returns the command whose turn Go needs.
func (s *Stream) Turning() *kv.Command { return s.command }

// Yield proposes what was checked, and returns what is to be offered, before its driver waits for a turn: which may be that of
// one of these commands.
func (s *Stream) Yield() consensus.Message {
	s.handOver()
	return s.Offering()
}

// Turned gives a command its turn, or says why it gets none. leave lets the next one have it; nil if the command costs little.
func (s *Stream) Turned(leave func(), err error) {
	one, command, again := s.one, s.command, s.request.Proposals[s.at].Again
	s.one, s.command = nil, nil
	s.at++
	switch {
	case err != nil && again: // it may have been applied, and is no refusal
		one.Complete(kv.Result{}, err)
	case err != nil:
		one.refuse(err)
	case leave != nil && !s.keepTurn(one, leave):
	case s.request.TermConfig != nil:
		s.expect(one, command)
		s.urgent = leave != nil
	default:
		s.ready = append(s.ready, clients.Proposed{ID: one.id, Command: command, Done: one})
		if leave != nil { // others wait for its turn
			s.handOver()
		}
	}
}

// keepTurn notes the turn of a proposal. It gives it back, and returns false, if the stream has ended meanwhile.
func (s *Stream) keepTurn(one *proposal, leave func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		leave()
		return false
	}
	one.leave = sync.OnceFunc(leave)
	return true
}

// handOver proposes what was checked.
func (s *Stream) handOver() {
	if len(s.ready) == 0 {
		return
	}
	s.all.options.Clients.ProposeAllFor(s.ready, func(at int, why error) {
		s.ready[at].Done.(*proposal).refuse(why)
	})
	if s.closedMeanwhile() {
		for i := range s.ready {
			s.abandon(s.ready[i].Done.(*proposal))
		}
	}
	s.clearReady()
}

// clearReady forgets the commands that were checked, and keeps room for a few.
func (s *Stream) clearReady() {
	clear(s.ready)
	if s.ready = s.ready[:0]; cap(s.ready) > keptProposals {
		s.ready = nil
	}
}

// enter takes a proposal in if there is room for one more. Over means that the stream has ended, or ends because this member
// has no memory for the proposal and nothing of this stream will give some back. Answers that the client has not taken yet need
// room, too.
func (s *Stream) enter(one *proposal) Need {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.over != nil:
		return Over
	case s.full():
	case s.tab.Take(one.held()):
		s.unanswered[one] = struct{}{}
		s.grown = max(s.grown, len(s.unanswered))
		s.bytes += one.bytes
		one.entered = true
		s.all.options.Pending.Add(1)
		return goesOn
	default:
		return s.lacks(len(s.unanswered))
	}
	s.waits = true
	return Room
}

// holdParts counts the parts of a command that was admitted, which may be many more than its bytes on the wire, until it is
// answered.
func (s *Stream) holdParts(one *proposal, bytes int) Need {
	if bytes == 0 {
		return goesOn
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.over != nil:
		return Over
	case !s.tab.Take(int64(bytes)):
		return s.lacks(len(s.unanswered) - 1)
	}
	one.parts = int64(bytes)
	return goesOn
}

// lacks waits for room that others of this stream will give back: so many that are not answered, answers and verdicts. Where
// there are none the stream ends. The lock is held.
func (s *Stream) lacks(others int) Need {
	if others+len(s.finished) == 0 && s.sending+s.heard.held == 0 {
		s.over = errNoMemory
		return Over
	}
	s.waits = true
	return Room
}

// full reports whether the client must take answers before it may propose more. Half of what may be unread is left for what is
// under way: else a client that asks for many results again would get none of them, time after time.
func (s *Stream) full() bool {
	bounds := &s.all.options.Bounds
	return len(s.unanswered)+len(s.finished)+s.taken.answers >= bounds.Proposals || s.bytes > bounds.Bytes ||
		s.unread > bounds.UnreadBytes/2
}
