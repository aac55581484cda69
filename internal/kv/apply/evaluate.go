package apply

import (
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// Evaluate returns the result that Apply will give for an exact entry that is not applied yet, by the present state
// (docs/fast-path.md, "Accepting", rule 3). It returns false if the result is not certain: then no early answer may be given.
// Rejections and commands that change nothing are never certain, since their results have the revision of the store at that
// time.
//
// The caller guarantees that of the entries between the last one applied and e none conflicts with e's footprint, is a barrier
// or belongs to e's proposal, and that none of them takes the store to e's revision or beyond. Evaluate may be called
// concurrently with Apply, also while e and later entries are applied: then the answer is the kept result of e, if it is
// visible already.
func (m *Machine) Evaluate(e *consensus.Entry) (kv.Result, bool) {
	if e.Kind != consensus.EntryCommand || e.ExactRevision == 0 {
		return kv.Result{}, false
	}
	v := evaluation{store: m.store, leases: m.keys(), alarms: m.alarms, auth: m.auth.state.Load(), limits: m.limits,
		rev: m.store.Revision(), exact: kv.Revision(e.ExactRevision), unpermitted: m.options.Faults.EvaluateUnpermitted}
	v.account.left, v.looks = maxFastAnswerBytes, MaxLooks
	if !m.awaits(e) {
		return m.keptAt(e)
	}
	rejected, err := m.levels.judge(e)
	if err != nil || rejected {
		return kv.Result{}, false
	}
	cmd, err := kv.DecodeCommand(e.Payload)
	if err != nil {
		return kv.Result{}, false
	}
	asOffered(e, &cmd)
	res, ok := v.command(&cmd)
	// Apply reaches an entry, and notes its proposal, before it changes anything for later entries. So if e is still awaited,
	// no read above, of leases and alarms too, saw a change by e or by a later entry. The index alone does not tell: a new
	// leader may have put the proposal elsewhere in the log, before e's index.
	if !m.awaits(e) {
		return m.keptAt(e)
	}
	return res, ok
}

// awaits reports whether an entry would be executed.
func (m *Machine) awaits(e *consensus.Entry) bool {
	return !m.position.hasBegun(e.Index) && m.sessions.awaits(e.Proposal)
}

// keptAt returns the kept result of e's proposal, if it was executed at e's revision.
func (m *Machine) keptAt(e *consensus.Entry) (kv.Result, bool) {
	res, found, err := m.Result(e.Proposal)
	if err != nil || !found || res.Err != nil || res.Revision != kv.Revision(e.ExactRevision) {
		return kv.Result{}, false
	}
	if res.Left != nil {
		cmd, err := kv.DecodeCommand(e.Payload)
		if err != nil || m.Recall(&cmd, &res, &fixedAccount{left: maxFastAnswerBytes}) != nil {
			return kv.Result{}, false
		}
		res.Memory = nil
	}
	return res, true
}

// evaluation is the evaluation of one command. It reads one revision; an operation that depends on an earlier one of the same
// command makes the result uncertain.
type evaluation struct {
	store  *mvcc.Store
	leases leasedKeys
	alarms *alarmTable
	auth   *auth.State
	limits *limitTable

	rev     kv.Revision  // the revision that is read
	exact   kv.Revision  // the revision that the command will have
	written keyrange.Set // by the operations so far
	account fixedAccount
	looks   int64 // what is left of MaxLooks; values that puts keep count like answers
	// unpermitted is Faults.EvaluateUnpermitted.
	unpermitted bool
	unknown     bool // the result is not certain and must not be used
}

func (v *evaluation) command(cmd *kv.Command) (res kv.Result, ok bool) {
	noSpace, corrupt := forbidden(v.alarms.list())
	denied := permit(v.auth, v.leases, cmd) != nil && !v.unpermitted
	if v.rev >= v.exact || denied || barred(cmd, noSpace, corrupt) != nil {
		return kv.Result{}, false
	}
	res.Revision = v.exact
	switch {
	case cmd.Put != nil:
		res.Put = v.put(cmd.Put)
	case cmd.Delete != nil:
		res.Delete = v.delete(cmd.Delete)
	case cmd.Txn != nil:
		b := choose(cmd.Txn, v.holds)
		res.Txn = v.run(&b)
	default:
		return kv.Result{}, false
	}
	if v.unknown || !v.wrote() {
		return kv.Result{}, false
	}
	return res, true
}

// wrote reports whether the command has its revision: before its first change, the results of operations have the store's.
func (v *evaluation) wrote() bool { return v.written.Len() > 0 }

func (v *evaluation) holds(c *kv.Compare) bool {
	holds, err := v.store.CheckAt(c, v.rev, &v.account, &v.looks)
	v.unknown = v.unknown || err != nil || v.looks < 0
	return holds
}

// read reads keys for an operation, which must not see the changes of earlier ones.
func (v *evaluation) read(op *kv.RangeOp) kv.RangeResult {
	if v.unknown || v.written.Overlaps(keyrange.From(op.Key, op.End)) {
		v.unknown = true
		return kv.RangeResult{}
	}
	op.Revision = v.rev
	found, _, err := v.store.RangeWithin(op, &v.account)
	v.unknown = err != nil // compacted since, too large, or the disk
	return found
}

func (v *evaluation) put(op *kv.PutOp) *kv.PutResult {
	if op.Lease != 0 && !v.leases.leases.Live(op.Lease) || v.limits.covers(op.Key) && !v.limits.evaluateQuota {
		v.unknown = true
	}
	res := &kv.PutResult{}
	if op.PrevKV || op.IgnoreValue || op.IgnoreLease {
		found := v.read(&kv.RangeOp{Key: op.Key})
		v.looks -= kv.WalkKeyBytes + maxFastAnswerBytes
		switch {
		case v.looks < 0:
			v.unknown = true
		case len(found.KVs) == 0:
			v.unknown = v.unknown || op.IgnoreValue || op.IgnoreLease
		case op.PrevKV:
			res.Prev = &found.KVs[0]
		}
	}
	v.written.Add(keyrange.Single(op.Key))
	return res
}

func (v *evaluation) delete(op *kv.DeleteOp) *kv.DeleteResult {
	found := v.read(&kv.RangeOp{Key: op.Key, End: op.End, CountOnly: !op.PrevKV})
	if found.Count > 0 {
		v.written.Add(keyrange.From(op.Key, op.End))
	}
	return &kv.DeleteResult{Deleted: found.Count, Prevs: found.KVs}
}

// find is a range inside a transaction. A range at a past revision sees no change of the transaction. The store refuses a
// revision that it has not reached, though it may be past when the entry is applied.
func (v *evaluation) find(op *kv.RangeOp) *kv.RangeResult {
	if !v.wrote() { // run makes the result uncertain anyway
		return nil
	}
	if op.Revision < 0 { // refused, unless nothing was ever compacted
		v.unknown = true
		return nil
	}
	if op.Revision > 0 {
		found, _, err := v.store.RangeWithin(op, &v.account)
		v.unknown = v.unknown || err != nil
		return &found
	}
	now := *op
	found := v.read(&now)
	return &found
}

// run is executor.run without its effects. It ends at the first operation whose result is not certain.
func (v *evaluation) run(b *branch) *kv.TxnResult {
	res := &kv.TxnResult{Succeeded: b.succeeded}
	if len(b.ops) > 0 {
		res.Responses = make([]kv.OpResult, len(b.ops))
	}
	nested := 0
	for i := 0; i < len(b.ops) && !v.unknown; i++ {
		out := &res.Responses[i]
		switch op := &b.ops[i]; {
		case op.Range != nil:
			out.Range = v.find(op.Range)
		case op.Put != nil:
			out.Put = v.put(op.Put)
		case op.Delete != nil:
			out.Delete = v.delete(op.Delete)
		case op.Txn != nil:
			out.Txn = v.run(&b.nested[nested])
			nested++
			continue
		}
		v.unknown = v.unknown || !v.wrote()
		out.Revision = v.exact
	}
	return res
}
