package streams

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/proposals"
)

// admit reads and checks one proposal as the calls of etcd's API are read and checked.
func (all *Streams) admit(ctx context.Context, r *quoratepb.Proposal, as Asked) (*kv.Command, error) {
	switch r.Kind {
	case quoratepb.Proposal_KIND_PUT, quoratepb.Proposal_KIND_DELETE_RANGE, quoratepb.Proposal_KIND_TXN:
		return all.options.Requests.Admit(ctx, r, as)
	}
	return nil, errProposal
}

// admitCheap is admit for what is recorded: what costs much goes the slow way, where it has to wait for its turn.
func (all *Streams) admitCheap(
	ctx context.Context, id consensus.ProposalID, r *quoratepb.Proposal,
) (*kv.Command, error) {
	command, err := all.admit(ctx, r, Asked{ID: id, Record: true})
	if err != nil {
		return nil, err
	}
	cheap, err := all.options.Requests.CostsLittle(ctx, command)
	if err == nil && !cheap {
		err = errCostly
	}
	return command, err
}

var errCostly = status.Error(codes.ResourceExhausted, "quorate: the command costs too much to be recorded")

// errResultGone answers what was executed before, when neither its response nor its history is kept.
var errResultGone = status.Error(codes.OutOfRange,
	"etcdserver: the request was executed, but its response is no longer kept")

// errOtherRequest answers a request under an id that the client has given to a request of another kind.
var errOtherRequest = status.Error(codes.InvalidArgument,
	"quorate: another request was executed under this session and sequence: give each request a sequence of its own")

// Results are kept until their client says that it has them. Those of all clients together have a bound; beyond it only
// clients of which little is kept may propose.
var errResultsFull = status.Error(codes.ResourceExhausted,
	"quorate: too many results are kept for native clients: end this one's session, or wait")

// checkName refuses a proposal under an id that no client can have.
func (all *Streams) checkName(id consensus.ProposalID) error {
	if !id.Session.OfClient() || id.Sequence == 0 || id.Sequence > all.options.SessionLength {
		return errProposal
	}
	return nil
}

// room refuses a proposal of a session of which much is kept already. It is no end of one that was sent before, as it says.
func (all *Streams) room(id consensus.ProposalID) error {
	machine, release := all.options.Member.Machine()
	defer release()
	return roomForResult(machine, id.Session, &all.options.Bounds)
}

// roomForResult refuses a session of which much is kept once too much is kept of all.
func roomForResult(machine *apply.Machine, session consensus.SessionID, bounds *Bounds) error {
	if machine.ResultBytes() > bounds.ResultBytes && machine.SessionBytes(session) > bounds.FewResultBytes {
		return errResultsFull
	}
	return nil
}

// proposalAnswer says what came of a proposal. The memory of the result counts until the answer is sent, unless that is an
// error.
func (all *Streams) proposalAnswer(ctx context.Context, f *finished) *quoratepb.Answer {
	answer := &quoratepb.Answer{Session: f.id.Session.Number, Sequence: f.id.Sequence}
	err := f.result.Err
	switch {
	case f.refused != nil:
		err, answer.Verdict = f.refused, quoratepb.Answer_VERDICT_REFUSED
		if errors.Is(err, proposals.ErrTooMany) || errors.Is(err, proposals.ErrNoLeader) {
			answer.Verdict = quoratepb.Answer_VERDICT_AGAIN
		}
	case errors.Is(f.err, proposals.ErrSessionLost):
		err, answer.Verdict = f.err, quoratepb.Answer_VERDICT_LOST
	case f.err != nil:
		err, answer.Verdict = f.err, quoratepb.Answer_VERDICT_AGAIN
	case errors.Is(err, kv.ErrSessionUnknown):
		answer.Verdict = quoratepb.Answer_VERDICT_GONE
	case errors.Is(err, kv.ErrAborted):
		answer.Verdict = quoratepb.Answer_VERDICT_ABORTED
	default:
		answer.Verdict = quoratepb.Answer_VERDICT_APPLIED
	}
	if err == nil && !answers(f.kind, &f.result) {
		err, answer.Verdict = errOtherRequest, quoratepb.Answer_VERDICT_REFUSED
	}
	if err == nil && f.result.Left != nil {
		err = errResultGone // of a command that asks for nothing, so that the first one was another
		if f.command != nil {
			err = all.options.Requests.Complete(ctx, f.command, &f.result)
		}
	}
	if err != nil {
		why := status.Convert(all.options.Requests.Wire(err))
		answer.Code, answer.Message = uint32(why.Code()), why.Message()
		all.options.Failed.Add(1)
		f.drop()
		return answer
	}
	answer.Response = all.options.Requests.Response(f.kind, &f.result)
	return answer
}

// answers reports whether a result is that of a request of this kind. Another one has it if the client gave one id to two.
func answers(kind quoratepb.Proposal_Kind, result *kv.Result) bool {
	switch kind {
	case quoratepb.Proposal_KIND_PUT:
		return result.Put != nil
	case quoratepb.Proposal_KIND_DELETE_RANGE:
		return result.Delete != nil
	case quoratepb.Proposal_KIND_TXN:
		return result.Txn != nil
	}
	return false
}
