package writerapi

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/rpc/etcderr"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// admitProposal reads and checks one proposal as the calls of etcd's API are read and checked.
func (w *Service) admitProposal(ctx context.Context, r *quoratepb.Proposal) (*kv.Command, error) {
	switch r.Kind {
	case quoratepb.Proposal_KIND_PUT, quoratepb.Proposal_KIND_DELETE_RANGE, quoratepb.Proposal_KIND_TXN:
		return w.options.KV.Admit(ctx, r)
	}
	return nil, errProposal
}

// admitCheap is admitProposal for what is recorded: what costs much goes the slow way, where it has to wait for its turn.
func (w *Service) admitCheap(ctx context.Context, r *quoratepb.Proposal) (*kv.Command, error) {
	command, err := w.admitProposal(ctx, r)
	if err != nil {
		return nil, err
	}
	cheap, err := w.options.KV.CostsLittle(ctx, command)
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
const (
	maxResultBytes     = 256 << 20
	fewResultBytes     = 64 << 10
	errTextResultsFull = "quorate: too many results are kept for native clients: end this one's session, or wait"
)

var errResultsFull = status.Error(codes.ResourceExhausted, errTextResultsFull)

// room refuses a proposal of a session of which much is kept already. It is no end of one that was sent before, as it says.
func (w *Service) room(id consensus.ProposalID) error {
	machine, release := w.options.Member.Machine()
	defer release()
	return roomForResult(machine, id.Session, w.mostResultBytes)
}

// roomForResult refuses a session of which much is kept once mostBytes are kept of all.
func roomForResult(machine *apply.Machine, session consensus.SessionID, mostBytes int64) error {
	if machine.ResultBytes() > mostBytes && machine.SessionBytes(session) > fewResultBytes {
		return errResultsFull
	}
	return nil
}

// proposalAnswer says what came of a proposal.
func (w *Service) proposalAnswer(ctx context.Context, f *finished) *quoratepb.Answer {
	answer := &quoratepb.Answer{Session: f.id.Session.Number, Sequence: f.id.Sequence}
	err := f.result.Err
	switch {
	case f.refused != nil:
		err, answer.Verdict = f.refused, quoratepb.Answer_VERDICT_REFUSED
		if errors.Is(err, member.ErrTooManyRequests) || errors.Is(err, member.ErrNoLeader) {
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
			err = w.options.KV.Complete(ctx, f.command, &f.result)
		}
	}
	if err != nil {
		why := status.Convert(etcderr.Wire(err))
		answer.Code, answer.Message = uint32(why.Code()), why.Message()
		w.options.Failed.Add(1)
		f.drop()
		return answer
	}
	response := w.options.KV.Response(f.kind, &f.result)
	answer.Response = response.AppendWire(make([]byte, 0, response.SizeWire()))
	f.drop() // from here on the stream's own bound counts
	return answer
}

// drop gives back the memory of a result.
func (f *finished) drop() {
	if f.result.Memory != nil {
		f.result.Memory.Release()
	}
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

// Collect shows how many native clients are here, and how many sessions they have in the cluster, as this member knows.
func (w *Service) Collect(e *metrics.Emitter) {
	machine, release := w.options.Member.Machine()
	open := len(machine.ClientSessions())
	release()
	e.Gauge("quorate_client_sessions", "Open sessions of native clients.", float64(open))
	e.Gauge("quorate_clients_offered_bytes", "What native clients offered and the core has not looked at yet.",
		float64(w.options.Clients.OfferedBytes()))
	registered, refused := w.register.counts()
	e.Gauge("quorate_clients_registered", "Native clients that have a stream to this member, or had one a moment ago.",
		float64(registered))
	e.Counter("quorate_clients_refused_total", "Streams of native clients that were refused because there were too many.",
		float64(refused))
	e.Counter("quorate_clients_unread_total", "Streams of native clients that ended because nobody read the answers.",
		float64(w.unread.Load()))
}
