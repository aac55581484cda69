package rpc

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/rpc/costly"
	"github.com/quorate/quorate/internal/rpc/gate"
	"github.com/quorate/quorate/internal/rpc/h2"
	"github.com/quorate/quorate/internal/rpc/split"
	"github.com/quorate/quorate/internal/rpc/timings"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// writeRequest is a Put, DeleteRange or Txn request.
type writeRequest interface {
	wire.Decoder
	// command is the command for the request.
	command() *kv.Command
	// admit refuses a request that may not be proposed, with the checks in etcd's order.
	admit(ctx context.Context, s *kvService, check growthCheck) error
	// respond returns the response for the applied result.
	respond(s *kvService, result *kv.Result) h2.Message
	// size is the size of the request as it came.
	size() int
}

// writeBlocking takes the steps of a write in a goroutine, which waits.
func (s *kvService) writeBlocking(ctx context.Context, r writeRequest) (h2.Message, error) {
	command := r.command()
	note := noteWrite(command, r.size())
	if note == nil {
		return s.write(ctx, r)
	}
	begun := s.timings.Now()
	message, err := s.write(ctx, r)
	s.took(ctx, note, command.By.User, sizeOf(message, err))
	if call := split.Of(ctx); call != nil {
		s.splits.addSplit(s.self, note.times, begun, s.timings.Now(), call.Passage())
	}
	return message, err
}

func (s *kvService) write(ctx context.Context, r writeRequest) (h2.Message, error) {
	if err := r.admit(ctx, s, s.firstCheck(patiently)); err != nil {
		return nil, err
	}
	result, err := s.propose(ctx, r.command())
	if err != nil {
		return nil, err
	}
	return r.respond(s, &result), nil
}

// propose replicates a command in the caller's name, and turns its rejection into an error.
func (s *shared) propose(ctx context.Context, command *kv.Command) (kv.Result, error) {
	return s.access.Propose(ctx, command, s.replicate)
}

// replicate is propose with the credentials that the command has.
func (s *shared) replicate(ctx context.Context, command *kv.Command) (kv.Result, error) {
	if err := s.makeRoom(ctx, command, patiently); err != nil {
		return kv.Result{}, err
	}
	if err := s.limitWrite(command.By, command); err != nil {
		return kv.Result{}, err
	}
	p := s.beginProposal(command)
	tell := routed(ctx)
	result, err := s.bounds.costly.Propose(ctx, command, s.options.Member.Propose)
	tell()
	outcome := p.end(&result, err)
	s.exemplify(ctx, timings.KindOf(command), p.proposed, err)
	if err = outcome; err == nil {
		err = s.complete(ctx, command, &result, patiently)
	}
	return result, err
}

// exemplify has the time of a request be known by the trace of its call, if that is recorded.
func (s *shared) exemplify(ctx context.Context, kind string, begun time.Time, err error) {
	if s.options.Tracer == nil || gate.Refused(err) {
		return
	}
	if trace := s.options.Tracer.TraceOf(ctx); trace != "" {
		s.timings.Traced(kind, begun, err, trace)
	}
}

// makeRoom waits for room for the answer to a command that asks for pairs: an executed command can not be undone.
func (s *shared) makeRoom(ctx context.Context, command *kv.Command, p patience) error {
	switch {
	case !kv.AsksForPairs(command):
		return nil
	case p == patiently:
		return s.unanswered(s.options.Answers.Ready(ctx))
	case !s.options.Answers.ReadyNow(ctx):
		return errWaits
	}
	return nil
}

// proposal is a command from the call of the member until its outcome is known.
type proposal struct {
	*shared
	command  *kv.Command
	proposed time.Time
}

func (s *shared) beginProposal(command *kv.Command) proposal {
	s.stats.pending.Add(1)
	return proposal{s, command, s.timings.Now()}
}

// end counts the outcome of a proposal, and returns the error for the caller: the lack of a result, or its rejection.
func (p *proposal) end(result *kv.Result, err error) error {
	p.timings.Command(p.command, p.proposed, err)
	p.stats.pending.Add(-1)
	switch {
	case err != nil:
		p.stats.failedProposals.Add(1)
		return writeTimeout(err)
	case result.Err == kv.ErrOverQuota:
		return p.overQuota(p.command)
	case result.Err != nil:
		return result.Err
	}
	p.noteOwn(result.Revision)
	return nil
}

// noteOwn notes the answer to a write, unless the write was applied before.
func (s *shared) noteOwn(revision kv.Revision) {
	if revision > s.revision() {
		s.own.note(revision)
	}
}

// asyncWrite is a Put or a Txn without a goroutine.
type asyncWrite struct {
	asyncCall
	proposal
	request writeRequest
	result  kv.Result
}

// start takes the steps until it has asked the member. It returns false, and has changed nothing, if a step may have to wait.
func (w *asyncWrite) start(r writeRequest, received int) bool {
	w.request = r
	if !w.kv.audits.free() { // before anything is taken from what limits allow
		return false
	}
	refused := w.admit(w.front.Context())
	if refused == errWaits {
		return false
	}
	w.audit()
	if w.note = noteWrite(r.command(), received); w.note != nil {
		w.note.User = r.command().By.User
	}
	err := w.begin(w, received)
	if err == nil { // the gate's refusal takes precedence
		err = refused
	}
	if err != nil {
		w.refuse(err)
		return true
	}
	w.proposal = w.kv.beginProposal(r.command())
	w.front.Finish = w.finish
	w.asked(w.options.Member.ProposeAsync(w.command, w))
	return true
}

// audit begins the record of the write.
func (w *asyncWrite) audit() {
	name, op := pb.KV_Txn_FullMethodName, audit.OpTxn
	if w.request.command().Put != nil {
		name, op = pb.KV_Put_FullMethodName, audit.OpPut
	}
	if w.audited = w.kv.audits.begin(w.front.Context(), name, op); w.audited != nil {
		w.audited.describe(w.request)
		w.audited.event.User = w.request.command().By.User
	}
}

// admit takes the steps of writeBlocking and propose that precede the proposal.
func (w *asyncWrite) admit(ctx context.Context) error {
	s, command := w.kv, w.request.command()
	if !s.options.Member.Prompt() || costly.MayBe(command) { // it may wait for Start, or for its turn
		return errWaits
	}
	if err := w.request.admit(ctx, s, s.firstCheck(promptly)); err != nil {
		return err
	}
	if !s.options.Member.PromptFor(command) { // it may wait for its feature level
		return errWaits
	}
	if err := s.sign(ctx, command, promptly); err != nil {
		return err
	}
	if err := s.makeRoom(ctx, command, promptly); err != nil {
		return err
	}
	return s.limitWrite(command.By, command) // the last step: it takes from what others may have
}

// Complete implements proposals.Completion.
func (w *asyncWrite) Complete(result kv.Result, err error) {
	w.result, w.err = result, err
	w.front.Done()
}

// CompleteAfter implements proposals.Passenger.
func (w *asyncWrite) CompleteAfter(by proposals.Passage, result kv.Result, err error) {
	w.passage = by
	w.Complete(result, err)
}

// readFor implements steps: what a write reads is a part of its being applied.
func (w *asyncWrite) readFor() time.Duration { return 0 }

// revision implements steps.
func (w *asyncWrite) revision() int64 { return int64(w.result.Revision) }

// ended implements steps.
func (w *asyncWrite) ended() error { return w.end(&w.result, w.err) }

// finish implements steps.
func (w *asyncWrite) finish() {
	err := w.ended()
	if err == nil {
		err = w.kv.complete(w.front.Context(), w.command, &w.result, promptly)
	}
	switch err {
	case nil:
		w.answer(w.request.respond(w.kv, &w.result), nil)
	case errWaits:
		if w.front.Reserve() != nil { // the command has been executed
			if w.result.Memory != nil {
				w.result.Memory.Release()
			}
			w.answer(nil, executedUnanswered(&w.result))
			return
		}
		w.later(func(ctx context.Context) (h2.Message, error) {
			if err := w.kv.complete(ctx, w.command, &w.result, patiently); err != nil {
				return nil, err
			}
			return w.request.respond(w.kv, &w.result), nil
		})
	default:
		w.answer(nil, err)
	}
}
