package rpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/clients/streams"
	"github.com/quorate/quorate/internal/rpc/wire"
	"github.com/quorate/quorate/internal/rpc/writerapi"
)

// nativeKV is the part of KV that the native Writer service needs.
type nativeKV struct{ *kvService }

// Permit implements writerapi.KV.
func (k nativeKV) Permit(ctx context.Context) error { return k.access.User(ctx) }

// Unsettled implements writerapi.KV.
func (k nativeKV) Unsettled(ctx context.Context) bool { return k.access.Unsettled(ctx) }

// Admit implements writerapi.KV. A write that has passed before was recorded, and has taken what limits allow: of it only a
// refusal is recorded.
func (k nativeKV) Admit(ctx context.Context, r *quoratepb.Proposal, as streams.Asked) (*kv.Command, error) {
	command, err := k.admit(ctx, r)
	call := k.audit(ctx, command, r, as)
	if err == nil {
		if err = k.access.SignOffer(ctx, command); err != nil {
			err = fmt.Errorf("%w: %w", writerapi.ErrDenied, err)
		}
	}
	if err == nil && as.Passed {
		k.audits.drop(call)
		return command, nil
	}
	if err == nil {
		if err = k.audits.admit(ctx, call); err != nil {
			err = held(r, err)
		}
	}
	if err == nil {
		refusal := k.writeRefusal(command.By, command)
		if err = limitError(refusal); err != nil && refusal.Retry > 0 { // else it never passes, and must not be asked for again
			err = held(r, err)
		}
	}
	if command != nil && !as.Passed {
		k.took(ctx, noteWrite(command, len(r.Request)), command.By.User, 0)
	}
	k.audits.end(ctx, call, 0, err)
	return command, err
}

// held is why this member, and not the log, takes no proposal now. One that was sent before may have been executed, through
// another member: then it is no refusal.
func held(r *quoratepb.Proposal, why error) error {
	if r.Again {
		return fmt.Errorf("%w: %w", writerapi.ErrNoRoom, why)
	}
	return why
}

// audit begins the record of a write of a native client, which ends when the write is admitted: its outcome may be told by
// another member. nil: it is not recorded.
func (k nativeKV) audit(ctx context.Context, command *kv.Command, r *quoratepb.Proposal, as streams.Asked) *audited {
	if command == nil {
		return nil
	}
	op := audit.OpTxn
	switch {
	case command.Put != nil:
		op = audit.OpPut
	case command.Delete != nil:
		op = audit.OpDelete
	}
	call := k.audits.begin(ctx, nativeMethod, op)
	switch {
	case call == nil:
	case command.Put != nil:
		call.put(command.Put, 0)
	case command.Delete != nil:
		call.keep(command.Delete.Key, command.Delete.End)
	case command.Txn != nil:
		call.txn(command.Txn, 0)
	}
	if call != nil {
		call.event.Write = nameOf(r, as)
	}
	return call
}

// nameOf is the name by which a record tells a write from others, and its attempts from each other.
func nameOf(r *quoratepb.Proposal, as streams.Asked) audit.Write {
	w := audit.Write{Client: uint64(as.ID.Session.Member), Session: as.ID.Session.Number, Sequence: as.ID.Sequence}
	switch {
	case as.Record:
		w.Attempt = audit.AttemptWitness
	case r.Again:
		w.Attempt = audit.AttemptRepeat
	}
	return w
}

// nativeMethod is by which the records of native clients' writes are known.
const nativeMethod = "/quorate.v1.Writer/Propose"

func (k nativeKV) admit(ctx context.Context, r *quoratepb.Proposal) (*kv.Command, error) {
	request, err := k.requestOf(r.Kind)
	if err != nil {
		return nil, err
	}
	if err := request.DecodeWire(r.Request); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	check := k.firstCheck(patiently)
	if r.Again {
		check = k.checkAgain()
	}
	err = request.admit(ctx, k.kvService, check)
	return request.command(), err
}

// requestOf returns an empty request of a kind.
func (k nativeKV) requestOf(kind quoratepb.Proposal_Kind) (writeRequest, error) {
	switch kind {
	case quoratepb.Proposal_KIND_PUT:
		return new(putRequest), nil
	case quoratepb.Proposal_KIND_DELETE_RANGE:
		return new(deleteRequest), nil
	case quoratepb.Proposal_KIND_TXN:
		txn := new(txnRequest)
		k.limitParts(txn)
		return txn, nil
	}
	return nil, fmt.Errorf("rpc: a proposal has no kind %d", kind)
}

// Turn implements writerapi.KV.
func (k nativeKV) Turn(ctx context.Context, command *kv.Command, waits func()) (leave func(), err error) {
	return k.bounds.costly.Turn(ctx, command, waits)
}

// CostsLittle implements writerapi.KV.
func (k nativeKV) CostsLittle(ctx context.Context, command *kv.Command) (bool, error) {
	return k.bounds.costly.Little(ctx, command)
}

// Response implements writerapi.KV.
func (k nativeKV) Response(kind quoratepb.Proposal_Kind, result *kv.Result) wire.Encoder {
	switch kind {
	case quoratepb.Proposal_KIND_PUT:
		return new(putRequest).respond(k.kvService, result)
	case quoratepb.Proposal_KIND_DELETE_RANGE:
		return new(deleteRequest).respond(k.kvService, result)
	default:
		return new(txnRequest).respond(k.kvService, result)
	}
}

// Complete implements writerapi.KV.
func (k nativeKV) Complete(ctx context.Context, command *kv.Command, result *kv.Result) error {
	return k.complete(ctx, command, result, patiently)
}
