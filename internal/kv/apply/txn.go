package apply

import "github.com/quorate/quorate/internal/kv"

// branch is the part of a transaction that its compares chose, with the branches of the transactions nested in it, in the order
// of the operations.
type branch struct {
	succeeded bool
	ops       []kv.Op
	nested    []branch
}

// txn chooses, checks and only then runs: all compares look at the state before the transaction, and a rejection leaves it
// untouched (invariant 4).
func (x *executor) txn(op *kv.TxnOp, res *kv.Result) {
	x.looks = MaxLooks
	b := choose(op, func(c *kv.Compare) bool { return x.looks >= 0 && x.w.Check(c, &x.looks) })
	if x.looks < 0 {
		res.Err = kv.ErrLooksTooFar
		return
	}
	if res.Err = x.check(&b); res.Err == nil {
		res.Txn = x.run(&b)
	}
}

// MaxLooks bounds the reads of one command's comparisons, and the values that its puts keep: kv.WalkKeyBytes for each key, and
// its value. Members execute commands one after the other, so all other writes wait. The bound belongs to the format of
// commands: every member must have the same.
const MaxLooks = 32 << 20

func choose(op *kv.TxnOp, holds func(*kv.Compare) bool) branch {
	b := branch{succeeded: true, ops: op.Then}
	for i := range op.Compares {
		if !holds(&op.Compares[i]) {
			b.succeeded, b.ops = false, op.Else
			break
		}
	}
	for i := range b.ops {
		if b.ops[i].Txn != nil {
			b.nested = append(b.nested, choose(b.ops[i].Txn, holds))
		}
	}
	return b
}

// check checks every operation that would run, and returns the first rejection.
func (x *executor) check(b *branch) error {
	nested := 0
	for i := range b.ops {
		var err error
		switch op := &b.ops[i]; {
		case op.Range != nil:
			err = x.w.CheckRevision(op.Range.Revision)
			if r := op.Range.Revision; r < 0 && r < x.w.CompactRevision() {
				err = kv.ErrCompacted // as in etcd, where only a range outside a transaction reads now at any negative revision
			}
		case op.Put != nil:
			err = x.checkPut(op.Put)
		case op.Txn != nil:
			err = x.check(&b.nested[nested])
			nested++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run executes the operations in order; each sees the changes of the earlier ones. The revision of an OpResult is the store's
// after that operation; a nested transaction has none, as in etcd.
func (x *executor) run(b *branch) *kv.TxnResult {
	res := &kv.TxnResult{Succeeded: b.succeeded}
	if len(b.ops) > 0 {
		res.Responses = make([]kv.OpResult, len(b.ops))
	}
	nested := 0
	for i := range b.ops {
		out := &res.Responses[i]
		switch op := &b.ops[i]; {
		case op.Range != nil:
			x.did.ranges++
			out.Range = x.answer.read(x.w, op.Range)
		case op.Put != nil:
			out.Put = x.put(op.Put)
		case op.Delete != nil:
			out.Delete = x.delete(op.Delete)
		case op.Txn != nil:
			out.Txn = x.run(&b.nested[nested])
			nested++
			continue
		}
		out.Revision = x.w.Revision()
	}
	return res
}
