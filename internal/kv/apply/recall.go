package apply

import (
	"errors"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// Recall completes a result that has Left: it reads again, from history, what the operations of the command saw. All reads are
// counted in account, which becomes the result's. The error is kv.ErrResultGone if the history is compacted or the command is
// not that of the result, an error of account, or an operating error; the result is unchanged then.
//
// Recall may be called concurrently with Apply, by any member that has applied the command, and for as long as the history is
// kept.
func (m *Machine) Recall(cmd *kv.Command, res *kv.Result, account kv.Account) error {
	if res.Left == nil {
		return nil
	}
	r := recall{store: m.store, rev: res.Revision, base: res.Left.Base, account: account}
	whole := *res
	whole.Left, whole.Memory = nil, account
	switch {
	case res.Put != nil && cmd.Put != nil:
		whole.Put = r.put(cmd.Put)
	case res.Delete != nil && cmd.Delete != nil:
		whole.Delete = r.delete(cmd.Delete)
	case res.Txn != nil && cmd.Txn != nil:
		b := choose(cmd.Txn, r.held)
		whole.Txn = r.run(&b)
	default:
		return kv.ErrResultGone
	}
	if r.err == nil && (r.changes > 0) != (r.rev != r.base) {
		r.err = kv.ErrResultGone
	}
	switch {
	case errors.Is(r.err, kv.ErrCompacted), errors.Is(r.err, kv.ErrFutureRevision):
		return kv.ErrResultGone
	case r.err != nil:
		return r.err
	}
	*res = whole
	return nil
}

// recall steps through a command that was executed, from one moment of it to the next.
type recall struct {
	store     *mvcc.Store
	rev, base kv.Revision // after and before the command; equal if it changed nothing
	changes   int64       // of the operations so far
	account   kv.Account
	err       error // results after an error are void
}

func (r *recall) now() mvcc.Moment {
	if r.rev == r.base {
		return r.store.After(r.rev)
	}
	return r.store.Within(r.rev, r.changes)
}

// shown is the revision in the result of an operation.
func (r *recall) shown() kv.Revision {
	if r.changes > 0 {
		return r.rev
	}
	return r.base
}

func (r *recall) held(c *kv.Compare) bool {
	if r.err != nil {
		return false
	}
	holds, err := r.now().Check(c, r.account)
	r.err = err
	return holds
}

func (r *recall) read(op *kv.RangeOp) (found kv.RangeResult) {
	if r.err == nil {
		found, r.err = r.now().Range(op, r.account)
	}
	return found
}

func (r *recall) put(op *kv.PutOp) *kv.PutResult {
	res := &kv.PutResult{}
	if op.PrevKV {
		if found := r.read(&kv.RangeOp{Key: op.Key}); len(found.KVs) > 0 {
			res.Prev = &found.KVs[0]
		}
	}
	r.changes++
	return res
}

func (r *recall) delete(op *kv.DeleteOp) *kv.DeleteResult {
	found := r.read(&kv.RangeOp{Key: op.Key, End: op.End, CountOnly: !op.PrevKV})
	r.changes += found.Count
	return &kv.DeleteResult{Deleted: found.Count, Prevs: found.KVs}
}

func (r *recall) find(op *kv.RangeOp) *kv.RangeResult {
	if op.Revision <= 0 || r.err != nil {
		found := r.read(op)
		return &found
	}
	found, _, err := r.store.RangeWithin(op, r.account)
	r.err = err
	return &found
}

// run is executor.run, afterwards.
func (r *recall) run(b *branch) *kv.TxnResult {
	res := &kv.TxnResult{Succeeded: b.succeeded}
	if len(b.ops) > 0 {
		res.Responses = make([]kv.OpResult, len(b.ops))
	}
	nested := 0
	for i := 0; i < len(b.ops) && r.err == nil; i++ {
		out := &res.Responses[i]
		switch op := &b.ops[i]; {
		case op.Range != nil:
			out.Range = r.find(op.Range)
		case op.Put != nil:
			out.Put = r.put(op.Put)
		case op.Delete != nil:
			out.Delete = r.delete(op.Delete)
		case op.Txn != nil:
			out.Txn = r.run(&b.nested[nested])
			nested++
			continue
		}
		out.Revision = r.shown()
	}
	return res
}
