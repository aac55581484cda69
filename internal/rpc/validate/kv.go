package validate

import (
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// The checks that depend on the request alone. Those that depend on the store come when the command is applied.

func Range(op *kv.RangeOp) error {
	if len(op.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	if op.Order == wire.UnknownSortOrder || op.Target == wire.UnknownSortTarget {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	return nil
}

var (
	errStreamSorted   = status.Error(codes.Unimplemented, "RangeStream does not support custom sort orders")
	errStreamFiltered = status.Error(codes.Unimplemented, "RangeStream does not support revision filters")
)

// RangeStream lets a sort target without an order through: see readChunk.
func RangeStream(op *kv.RangeOp) error {
	if err := Range(op); err != nil {
		return err
	}
	if op.Order != kv.SortNone && (op.Order != kv.SortAscend || op.Target != kv.SortByKey) {
		return errStreamSorted
	}
	if op.MinMod != 0 || op.MaxMod != 0 || op.MinCreate != 0 || op.MaxCreate != 0 {
		return errStreamFiltered
	}
	return nil
}

func Put(op *kv.PutOp) error {
	switch {
	case len(op.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case op.IgnoreValue && len(op.Value) != 0:
		return rpctypes.ErrGRPCValueProvided
	case op.IgnoreLease && op.Lease != 0:
		return rpctypes.ErrGRPCLeaseProvided
	}
	return nil
}

func Delete(op *kv.DeleteOp) error {
	if len(op.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}

// Txn checks a transaction of at most maxOps operations, and what is nested in it.
func Txn(op *kv.TxnOp, maxOps int) error { return txn(op, maxOps, 1) }

// txn lets a nested transaction use only what its parent's longest list left of maxOps. depth counts the transactions
// around it, and itself: what the log cannot hold is not proposed.
func txn(op *kv.TxnOp, maxOps, depth int) error {
	used := max(len(op.Compares), len(op.Then), len(op.Else))
	if used > maxOps || depth > kv.MaxTxnDepth {
		return rpctypes.ErrGRPCTooManyOps
	}
	for i := range op.Compares {
		if len(op.Compares[i].Key) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	for _, list := range [2][]kv.Op{op.Then, op.Else} {
		for i := range list {
			if err := nestedOp(&list[i], maxOps-used, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func nestedOp(op *kv.Op, maxOps, depth int) error {
	switch {
	case op.Range != nil:
		return Range(op.Range)
	case op.Put != nil:
		return Put(op.Put)
	case op.Delete != nil:
		return Delete(op.Delete)
	case op.Txn != nil:
		return txn(op.Txn, maxOps, depth+1)
	}
	return rpctypes.ErrGRPCKeyNotFound
}

// ReadOnly tells whether the outer lists hold nothing but ranges. A nested transaction is never read-only here, even
// if it writes nothing: etcd sends it through consensus.
func ReadOnly(op *kv.TxnOp) bool {
	for _, list := range [2][]kv.Op{op.Then, op.Else} {
		for i := range list {
			if list[i].Range == nil {
				return false
			}
		}
	}
	return true
}
