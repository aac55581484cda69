package apply_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// abort applies the abort of a proposal.
func (b *bench) abort(id consensus.ProposalID) kv.Result {
	b.t.Helper()
	b.index++
	e := consensus.Entry{Index: b.index, Term: 1, Kind: consensus.EntryAbort, Proposal: id}
	b.log = append(b.log, e)
	return b.apply(e)[0]
}

func TestMachine_Apply_abort(t *testing.T) {
	b := newBench(t)
	s := openSession(b, 1, 5)
	b.do(put("a", "1"))
	b.want("the first of a proposal", b.abort(s(2)), kv.Result{Revision: 2, Err: kv.ErrAborted})
	if got := b.m.Store().Revision(); got != 2 {
		t.Errorf("an abort took revision %d", got)
	}
	b.do(put("b", "1"))
	aborted := kv.Result{Revision: 2, Err: kv.ErrAborted}
	check := func(when string) {
		t.Helper()
		b.want(when+", the proposal, slow", b.propose(s(2), put("a", "2")), aborted)
		b.want(when+", the proposal, exact", b.apply(b.exact(s(2), 90, put("a", "2")))[0], aborted)
		b.want(when+", aborted again", b.abort(s(2)), aborted)
		if res, ok, err := b.m.Result(s(2)); !ok || err != nil || res.Err != kv.ErrAborted {
			t.Errorf("%s: result %+v %v %v", when, res, ok, err)
		}
		if done, retired := b.m.Decided(s(2)); !done || retired {
			t.Errorf("%s: decided %v %v", when, done, retired)
		}
		if got := b.get("a"); string(got.Value) != "1" || b.m.Store().Revision() != 3 {
			t.Errorf("%s: an aborted proposal wrote %+v", when, got)
		}
	}
	check("at once")
	b.open()
	check("opened again")
	b.want("another proposal of the session", b.propose(s(3), put("a", "3")), kv.Result{Revision: 4, Put: &kv.PutResult{}})
}

func TestMachine_Apply_abort_too_late(t *testing.T) {
	b := newBench(t)
	s := openSession(b, 1, 5)
	first := b.propose(s(2), put("a", "1"))
	b.want("of a proposal that was executed", b.abort(s(2)), first)
	b.want("that one again", b.propose(s(2), put("a", "2")), first)
	b.do(put("b", "1"))

	skipped := b.exact(s(3), 3, put("a", "3"))
	b.want("skipped", b.apply(skipped)[0], kv.Result{Revision: 3, Err: kv.ErrSkipped})
	b.want("of a proposal of which an attempt was skipped", b.abort(s(3)), kv.Result{Revision: 3, Err: kv.ErrAborted})
	b.want("its next attempt", b.apply(b.exact(s(3), 9, put("a", "3")))[0], kv.Result{Revision: 3, Err: kv.ErrAborted})

	unknown := kv.Result{Revision: 3, Err: kv.ErrSessionUnknown}
	b.want("of a session that never came", b.abort(proposals(7, 1)(2)), unknown)
	b.want("of no proposal", b.abort(consensus.ProposalID{}), unknown)
	openSession(b, 1, 6)
	b.want("of a session that is retired", b.abort(s(4)), unknown)
	b.want("its proposal", b.propose(s(4), put("a", "4")), unknown)
	opened := proposals(7, 1)
	b.want("of an opening", b.abort(opened(1)), unknown)
	b.want("which comes after it", b.propose(opened(1), open(7, 1)), kv.Result{Revision: 3})

	e := b.entry(put("c", "1"))
	e.Proposal = opened(2)
	gone := *b.entry(put("c", "1"))
	gone.Kind, gone.Proposal, gone.Payload = consensus.EntryAbort, opened(2), nil
	results := b.apply(b.log[len(b.log)-2], gone)
	b.want("both in one batch", results[1], results[0])
}
