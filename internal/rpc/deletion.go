package rpc

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/rpc/costly"
)

// deletedKeyBytes is what a key counts beside its length. Applying its deletion takes about ten times the sum.
const deletedKeyBytes = 64

// growthCheck is the bounds that a command is checked against before it is proposed.
type growthCheck struct {
	patience patience
	again    bool  // the command may have happened, and is not refused for the quota: warnQuota
	keyBytes int64 // for checkKeys
	passed   int64 // likewise: costly.MaxPassed
}

func (s *shared) firstCheck(p patience) growthCheck {
	return growthCheck{patience: p, keyBytes: s.options.DeletionBytes, passed: costly.MaxPassed}
}

// checkAgain is the check of a command that a client proposes again: it may have been executed, so it is refused only if the
// keys, or the deleted ones that it passes over, have become twice as many as the first check allows.
func (s *shared) checkAgain() growthCheck {
	return growthCheck{patience: patiently, again: true, keyBytes: 2 * s.options.DeletionBytes, passed: 2 * costly.MaxPassed}
}

// checkKeys refuses a command that would delete keys of too many bytes at once, or pass over too many deleted ones: until it is
// applied, every member holds the keys several times, and meanwhile applies nothing else. The proposing side makes the check,
// as it does checkQuota. Writes of others between the check and the log are not counted.
func (s *shared) checkKeys(ctx context.Context, command *kv.Command, check growthCheck) error {
	most := check.keyBytes
	deletes, long := deletesRanges(command), putsLongKey(command)
	if !deletes && !long {
		return nil
	}
	machine, release := s.options.Member.Machine()
	defer release()
	if long {
		if err := s.checkBounds(ctx, machine, command, check.patience); err != nil {
			return err
		}
	}
	if !deletes {
		return nil
	}
	// Only a caller that may delete the keys learns how many there are, or makes the member count them.
	if err := s.sign(ctx, command, check.patience); err != nil {
		return err
	}
	sum := deletionSum{all: costly.NewDeletions(ctx, machine.Store(), check.passed), left: most}
	if err := sum.command(command); err != nil {
		return err
	}
	if sum.left < 0 {
		return status.Errorf(codes.InvalidArgument, "etcdserver: request is too large: the keys that it deletes have more "+
			"than %d bytes, counted with %d for each key: delete the range in parts, the keys up to one in its middle first",
			most, deletedKeyBytes)
	}
	return nil
}

// deletionSum counts the deletions of a command, until they are too many.
type deletionSum struct {
	all  *costly.Deletions
	left int64
}

func (d *deletionSum) command(command *kv.Command) error {
	if command.Delete != nil {
		return d.delete(command.Delete)
	}
	return d.txn(command.Txn)
}

// txn counts both branches: which one is chosen is known when the command is applied.
func (d *deletionSum) txn(op *kv.TxnOp) error {
	left := d.left
	if err := d.ops(op.Then); err != nil {
		return err
	}
	then := d.left
	d.left = left
	err := d.ops(op.Else)
	d.left = min(d.left, then)
	return err
}

func (d *deletionSum) ops(ops []kv.Op) (err error) {
	for i := 0; i < len(ops) && d.left >= 0 && err == nil; i++ {
		switch {
		case ops[i].Delete != nil:
			err = d.delete(ops[i].Delete)
		case ops[i].Txn != nil:
			err = d.txn(ops[i].Txn)
		}
	}
	return err
}

// delete counts a range. A single key is no longer than the request.
func (d *deletionSum) delete(op *kv.DeleteOp) error {
	if len(op.End) == 0 {
		return nil
	}
	return d.all.Visit(op, func(key []byte, _ int) bool {
		d.left -= int64(len(key)) + deletedKeyBytes
		return d.left >= 0
	})
}

func deletesRanges(command *kv.Command) bool {
	return command.Delete != nil && len(command.Delete.End) > 0 ||
		command.Txn != nil && costly.AnyOp(command.Txn, func(op *kv.Op) bool {
			return op.Delete != nil && len(op.Delete.End) > 0
		})
}

// checkBounds refuses a command that puts a long key when the first and last keys of the store's tables have used up their
// memory.
func (s *shared) checkBounds(ctx context.Context, machine *apply.Machine, command *kv.Command, p patience) error {
	bounds := s.stateBounds(machine)
	if machine.TableBoundBytes() < bounds.admits.Bounds {
		return nil
	}
	if err := s.sign(ctx, command, p); err != nil {
		return err
	}
	return status.Errorf(codes.ResourceExhausted, "etcdserver: no memory for more keys of over %d bytes: the first and last "+
		"keys of the store's tables take %d bytes, which is all that %s has memory for: use shorter keys, delete and compact "+
		"long ones, or give all members more --memory", longKeyBytes, bounds.admits.Bounds, bounds.by)
}
