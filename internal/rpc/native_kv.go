package rpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/wire"
	"github.com/quorate/quorate/internal/rpc/writerapi"
)

// nativeKV is what the native Writer service needs of KV.
type nativeKV struct{ *kvService }

// Permit implements writerapi.KV.
func (k nativeKV) Permit(ctx context.Context) error { return k.access.User(ctx) }

// Unsettled implements writerapi.KV.
func (k nativeKV) Unsettled(ctx context.Context) bool { return k.access.Unsettled(ctx) }

// Admit implements writerapi.KV.
func (k nativeKV) Admit(ctx context.Context, r *quoratepb.Proposal) (*kv.Command, error) {
	command, err := k.admit(ctx, r)
	if err == nil {
		if err = k.access.SignOffer(ctx, command); err != nil {
			err = fmt.Errorf("%w: %w", writerapi.ErrDenied, err)
		}
	}
	return command, err
}

func (k nativeKV) admit(ctx context.Context, r *quoratepb.Proposal) (*kv.Command, error) {
	check := k.firstCheck()
	if r.Again {
		check = k.checkAgain()
	}
	switch r.Kind {
	case quoratepb.Proposal_KIND_PUT:
		call := new(wire.PutCall)
		if err := decode(call, r.Request); err != nil {
			return nil, err
		}
		return &call.Command, k.admitPut(ctx, call, check)
	case quoratepb.Proposal_KIND_DELETE_RANGE:
		call := new(wire.DeleteCall)
		if err := decode(call, r.Request); err != nil {
			return nil, err
		}
		return &call.Command, k.admitDelete(ctx, call, check)
	case quoratepb.Proposal_KIND_TXN:
		call := new(wire.TxnCall)
		k.limitParts(call)
		if err := decode(call, r.Request); err != nil {
			return nil, err
		}
		return &call.Command, k.admitTxn(ctx, call, check)
	}
	return nil, fmt.Errorf("rpc: a proposal has no kind %d", r.Kind)
}

func decode(call wire.Decoder, request []byte) error {
	if err := call.DecodeWire(request); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return nil
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
		return k.putResponse(result)
	case quoratepb.Proposal_KIND_DELETE_RANGE:
		return k.deleteResponse(result)
	default:
		return k.txnResponse(result)
	}
}

// Complete implements writerapi.KV.
func (k nativeKV) Complete(ctx context.Context, command *kv.Command, result *kv.Result) error {
	return k.complete(ctx, command, result)
}
