package rpc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/rpc/h2"
	"github.com/quorate/quorate/internal/rpc/split"
	"github.com/quorate/quorate/internal/rpc/timings"
	"github.com/quorate/quorate/internal/rpc/top"
	"github.com/quorate/quorate/internal/rpc/validate"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// rangeRequest is a Range request, with the state of its steps.
type rangeRequest struct {
	wire.RangeCall
	known    *auth.State   // the users by which it was permitted; nil: it was not yet
	by       string        // the user, if it was permitted patiently
	took     time.Duration // in the store
	small    answers.Small
	limited  limitedRead
	response wire.RangeResponse
}

// servedByLearner reports whether learners serve the range.
func (r *rangeRequest) servedByLearner() bool { return r.Serializable }

// rangeKeys takes the steps of a Range in a goroutine, which waits.
func (s *kvService) rangeKeys(ctx context.Context, r *rangeRequest) (_ h2.Message, err error) {
	begun := s.timings.Now()
	defer func() {
		s.timings.Request(timings.Range, begun, &err)
		s.exemplify(ctx, timings.Range, begun, err)
		if r.Serializable && err == nil {
			s.stats.serializable.Add(1)
		}
	}()
	if err := r.admit(ctx, s, patiently); err != nil {
		return nil, err
	}
	if err := r.limit(ctx, s, patiently); err != nil {
		return nil, err
	}
	if err := s.awaitState(ctx, r.Serializable); err != nil {
		return nil, err
	}
	message, err := r.show(ctx, s, patiently)
	r.count(ctx, s, message, err)
	return message, err
}

// limit refuses a range that a rule does not let pass now. promptly the caller's permission was seen before.
func (r *rangeRequest) limit(ctx context.Context, s *kvService, p patience) (err error) {
	if !s.hasLimits() {
		return nil
	}
	by := s.access.CallerNow(ctx)
	if p == patiently {
		if by, _, err = s.access.ReadBy(ctx, r.Op.Key, r.Op.End); err != nil {
			return err
		}
	}
	r.limited, err = s.limitRead(by, oneRange(r.Op.Key, r.Op.End))
	return err
}

// count counts a range that is being answered.
func (r *rangeRequest) count(ctx context.Context, s *kvService, message h2.Message, err error) {
	r.limited.countAnswer(s.shared, sizeOf(message, err))
	split.Of(ctx).Read(r.took)
	s.tookRead(ctx, top.Range, r.Op.Key, r.took, sizeOf(message, err), func() string {
		return cmp.Or(r.by, s.access.NameNow(ctx))
	})
}

// awaitState waits until this member's state may be read: for a linearizable read until it has all acknowledged writes, else
// until it has the writes that this member itself has answered.
func (s *shared) awaitState(ctx context.Context, serializable bool) error {
	if serializable {
		return s.showOwn(ctx)
	}
	return s.readIndex(ctx)
}

// showOwn waits until this member's state has the writes that it has answered. A linearizable read waits for every acknowledged
// write, these included.
func (s *shared) showOwn(ctx context.Context) error {
	missing := s.own.missing(s.revision())
	if missing == 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, waitForOwn(ctx))
	defer cancel()
	if s.readIndex(bounded) != nil && ctx.Err() == nil {
		raise(&s.own.givenUp, int64(missing))
	}
	return ctx.Err()
}

// readIndex is ReadIndex of the member.
func (s *shared) readIndex(ctx context.Context) error {
	begun := s.timings.Now()
	return s.indexRead(begun, s.options.Member.ReadIndex(ctx))
}

// indexRead counts the outcome of a wait for a read index, and returns the error for the caller.
func (s *shared) indexRead(begun time.Time, err error) error {
	s.timings.Read(begun, err)
	return readTimeout(err)
}

// admit refuses an invalid range. The permission is checked when the range is read; promptly it is checked before, too, so that
// a call that is refused then gets a goroutine.
func (r *rangeRequest) admit(ctx context.Context, s *kvService, p patience) error {
	err := validate.Range(&r.Op)
	if err == nil && p == promptly {
		err = r.permit(ctx, s, promptly)
	}
	return err
}

// permit refuses a caller that may not read the range.
func (r *rangeRequest) permit(ctx context.Context, s *kvService, p patience) (err error) {
	if p == patiently {
		by, users, err := s.access.ReadBy(ctx, r.Op.Key, r.Op.End)
		r.by, r.known = by.User, users
		return err
	}
	users, permitted := s.access.ReadNow(ctx, r.Op.Key, r.Op.End)
	if !permitted {
		return errWaits
	}
	r.known = users
	return nil
}

// show answers from this member's present state. A caller that may not read it by now learns nothing, not even why the range
// cannot be read.
func (r *rangeRequest) show(ctx context.Context, s *kvService, p patience) (h2.Message, error) {
	if r.known == nil {
		if err := r.permit(ctx, s, p); err != nil {
			return nil, err
		}
	}
	err := r.build(ctx, s, p)
	if errors.Is(err, errWaits) {
		return nil, err
	}
	if !s.access.Unchanged(r.known) {
		if refused := r.permit(ctx, s, p); refused != nil {
			if err == nil {
				drop(&r.response)
			}
			return nil, refused
		}
	}
	if err != nil {
		return nil, err
	}
	uncompressed(ctx, r.response.Memory)
	return &r.response, nil
}

// build reads the range. A large answer waits for memory.
func (r *rangeRequest) build(ctx context.Context, s *kvService, p patience) error {
	if p == patiently {
		return s.unanswered(s.options.Answers.Build(ctx, 0, func(account kv.Account) error {
			return r.read(s, account)
		}))
	}
	err := r.read(s, &r.small)
	if r.small.Exceeded {
		return errWaits
	}
	return err
}

// read reads the range from the store.
func (r *rangeRequest) read(s *kvService, account kv.Account) error {
	machine, release := s.options.Member.Machine()
	defer release()
	begun := s.timings.Now()
	page, err := fill(&r.response, account, machine.Store(), &r.Op, true)
	r.took += s.timings.Range(begun, err)
	machine.Counts().Ranges.Add(1)
	r.response.Header = s.headerAt(page.Revision)
	return err
}

// asyncRead is a linearizable Range of one key without a goroutine.
type asyncRead struct {
	asyncCall
	rangeRequest
}

// beginRange takes the steps until it has asked the member. It returns false, and has changed nothing, if a step may have to
// wait, or the answer may be large.
func beginRange(c asyncCall, message []byte) bool {
	s, r := c.kv, &asyncRead{asyncCall: c}
	if r.DecodeWire(bytes.Clone(message)) != nil || r.Serializable || len(r.Op.End) > 0 || !s.options.Member.Prompt() {
		return false
	}
	refused := r.admit(c.front.Context(), s, promptly)
	if refused == errWaits {
		return false
	}
	if !s.audits.free() {
		return false
	}
	if r.audited = s.audits.begin(c.front.Context(), pb.KV_Range_FullMethodName, audit.OpRange); r.audited != nil {
		r.audited.describe(&r.rangeRequest)
	}
	err := r.begin(r, len(message))
	if err == nil && refused == nil {
		refused = r.limit(c.front.Context(), s, promptly)
	}
	if err == nil && refused != nil { // the gate's refusal takes precedence
		err = r.timed(refused)
	}
	if err != nil {
		r.refuse(err)
		return true
	}
	r.front.Finish = r.finish
	r.asked(s.options.Member.ReadAsync(r))
	return true
}

// Complete implements proposals.Completion.
func (r *asyncRead) Complete(_ kv.Result, err error) {
	r.err = err
	r.front.DoneButRead()
}

// CompleteAfter implements proposals.Passenger.
func (r *asyncRead) CompleteAfter(by proposals.Passage, result kv.Result, err error) {
	r.passage = by
	r.Complete(result, err)
}

// timed times the range.
func (r *asyncRead) timed(err error) error {
	r.kv.timings.Request(timings.Range, r.begun, &err)
	return err
}

// revision implements steps.
func (r *asyncRead) revision() int64 { return int64(r.response.Header.Revision) }

// readFor implements steps.
func (r *asyncRead) readFor() time.Duration { return r.rangeRequest.took }

// ended implements steps.
func (r *asyncRead) ended() error { return r.timed(r.kv.indexRead(r.begun, r.err)) }

// finish implements steps. A reader goroutine calls it: the store may wait for a disk.
func (r *asyncRead) finish() {
	if r.err != nil {
		r.answer(nil, r.ended())
		return
	}
	s := r.kv
	_ = s.indexRead(r.begun, nil)
	message, err := r.show(r.front.Context(), s, promptly)
	if err == errWaits {
		if err = r.front.Reserve(); err != nil {
			r.answer(nil, r.timed(err))
			return
		}
		r.known = nil
		r.later(func(ctx context.Context) (h2.Message, error) {
			message, err := r.show(ctx, s, patiently)
			r.count(ctx, s, message, err)
			return message, r.timed(err)
		})
		return
	}
	r.count(r.front.Context(), s, message, err)
	r.answer(message, r.timed(err))
}
