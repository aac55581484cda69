package rpc

import (
	"context"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/costly"
)

// sign puts the caller's credentials into a command, and refuses the command if they do not permit it.
func (s *shared) sign(ctx context.Context, command *kv.Command, p patience) error {
	switch {
	case p == patiently:
		return s.access.Sign(ctx, command)
	case s.access.State().Enabled() && permitsLong(command) || !s.access.SignNow(ctx, command):
		return errWaits
	}
	return nil
}

// maxPermitted bounds the operations and comparisons whose permission is checked without a goroutine.
const maxPermitted = 16

// permitsLong reports whether it may take long to check the permission of a command: it has many parts, or attaches keys to
// leases, whose other keys count, too, or its keys are so long that checkKeys checks it again.
func permitsLong(command *kv.Command) bool {
	if txn := command.Txn; txn != nil && (len(txn.Compares)+len(txn.Then)+len(txn.Else) > maxPermitted ||
		costly.AnyOp(txn, func(op *kv.Op) bool { return op.Txn != nil })) {
		return true
	}
	return attachesKeys(command) || putsLongKey(command)
}

func attachesKeys(command *kv.Command) bool {
	return command.Put != nil && command.Put.Lease != 0 ||
		command.Txn != nil && costly.AnyOp(command.Txn, func(op *kv.Op) bool { return op.Put != nil && op.Put.Lease != 0 })
}

// longKeyBytes is the length from which on a key is long: the store holds the first and the last key of each of its tables in
// memory, and for short keys that is a thousandth of the table.
const longKeyBytes = 1 << 10

func putsLongKey(command *kv.Command) bool {
	long := func(op *kv.PutOp) bool { return op != nil && len(op.Key) > longKeyBytes }
	return long(command.Put) || command.Txn != nil && costly.AnyOp(command.Txn, func(op *kv.Op) bool { return long(op.Put) })
}
