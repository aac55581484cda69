package apply

import (
	"cmp"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/counts"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// executor executes commands, one after the other, in the engine batch under way. The next batch reuses its buffers.
type executor struct {
	leases   *lease.Lessor
	alarms   *alarmTable
	members  *memberTable
	sessions *sessionTable
	jobs     *jobTable
	levels   *levelTable
	moments  *momentTable
	auth     *authTable
	limits   *limitTable
	audit    *auditTable
	backup   *backupTable
	counts   *counts.Counts

	unpermitted bool  // Faults.Unpermitted
	lateMoments bool  // Faults.LateMoments
	endBytes    int64 // Options.EndBytes
	countBytes  int64 // Options.LimitCountBytes

	attributed bool        // by a command of this batch
	began      kv.Revision // before this batch

	w       *mvcc.Writer
	decoder kv.Decoder
	rows    lease.Rows
	events  eventBuffer
	answer  answer // to the command under way
	looks   int64  // what the command has left of MaxLooks
	puts    []kv.PutResult
	did     operations // of the command under way
}

// operations counts the operations of a command.
type operations struct{ puts, deletes, ranges uint64 }

// begin starts a batch of so many entries. wanted is true if there are watchers.
func (x *executor) begin(w *mvcc.Writer, entries int, wanted bool, answering Answering) {
	x.w, x.attributed, x.began = w, false, w.Revision()
	x.rows.Begin(w) // lease.Rows keeps the batch's changes of it
	x.events.begin(wanted)
	x.answer = answer{answering: answering}
	x.puts = make([]kv.PutResult, 0, entries) // one allocation for the results of all puts
}

// end releases the batch.
func (x *executor) end() {
	x.w, x.puts = nil, nil
	x.rows.Begin(nil)
	x.events.begin(false)
}

// execute executes one command and counts it. On a rejection res.Err is set and nothing was changed.
func (x *executor) execute(cmd *kv.Command, res *kv.Result) {
	x.did = operations{}
	x.limits.begin()
	x.events.command()
	x.attempt(cmd, res)
	x.counts.Applied(cmd, res.Err)
	x.counts.Done(x.did.puts, x.did.deletes, x.did.ranges)
}

func (x *executor) attempt(cmd *kv.Command, res *kv.Result) {
	if res.Err = permit(x.auth.state.Load(), x.keys(), cmd); res.Err != nil && !x.unpermitted {
		return
	}
	if res.Err = barred(cmd, x.alarms.noSpace, x.alarms.corrupt); res.Err != nil {
		return
	}
	switch {
	case cmd.Put != nil:
		x.looks = MaxLooks
		if res.Err = x.checkPut(cmd.Put); res.Err == nil {
			res.Put = x.put(cmd.Put)
		}
	case cmd.Delete != nil:
		res.Delete = x.delete(cmd.Delete)
	case cmd.Txn != nil:
		x.txn(cmd.Txn, res)
	case cmd.Compact != nil:
		if res.Err = x.w.Compact(cmd.Compact.Revision); res.Err == nil {
			x.moments.compact(x.w, cmd.Compact.Revision)
		}
	case cmd.LeaseGrant != nil:
		x.grant(cmd.LeaseGrant, res)
	case cmd.LeaseRevoke != nil:
		res.Err = x.revoke(cmd.LeaseRevoke.ID)
	case cmd.Alarm != nil:
		res.Alarms = x.alarms.change(x.w, cmd.Alarm)
	case cmd.Publish != nil:
		if x.members.publish(x.w, cmd.Publish) {
			x.levels.takePublished(x.w, cmd.Publish)
		}
	case cmd.LevelPolicy != nil:
		res.Err = x.levels.setPolicy(x.w, cmd.LevelPolicy)
	case cmd.Soak != nil:
		res.Err = x.levels.soak(x.w, cmd.Soak)
	case cmd.Moment != nil:
		res.Err = x.moments.note(x.w, cmd.Moment, x.revisionFor(cmd.Moment))
	case cmd.SessionOpen != nil:
		res.Err = x.sessions.applyOpen(x.w, cmd.SessionOpen)
	case cmd.SessionRetire != nil:
		x.sessions.retire(x.w, sessionID(cmd.SessionRetire.Member, cmd.SessionRetire.Number))
	case cmd.Job != nil:
		res.Err = x.jobs.write(x.w, cmd.Job)
	case cmd.Auth != nil:
		res.Err = x.auth.change(x.w, cmd.Auth)
	case cmd.Limit != nil:
		res.Err = x.limit(cmd.Limit)
	case cmd.Audit != nil:
		res.Err = x.audit.change(x.w, cmd.Audit)
	case cmd.Backup != nil:
		res.Err = x.backup.change(x.w, cmd.Backup, cmd.By.User)
	}
}

// revisionFor is the revision that a moment notes.
func (x *executor) revisionFor(op *kv.MomentOp) kv.Revision {
	if x.lateMoments {
		return max(x.began, op.Seen)
	}
	return x.w.Revision()
}

// limit executes a LimitOp.
func (x *executor) limit(op *kv.LimitOp) error {
	switch {
	case op.Set != nil:
		return x.limits.setRule(x.w, op.Set)
	case op.Delete != "":
		return x.limits.deleteRule(x.w, op.Delete)
	}
	return x.limits.step(x.w, op, cmp.Or(x.countBytes, kv.LimitCountBytes))
}

func (x *executor) checkPut(op *kv.PutOp) error {
	if op.Lease != 0 && !x.leases.Live(op.Lease) {
		return kv.ErrLeaseNotFound
	}
	if !op.IgnoreValue && !op.IgnoreLease {
		return x.limits.admit(x.w, op)
	}
	found := x.w.Get(op.Key)
	if found == nil {
		return kv.ErrKeyNotFound
	}
	if x.looks -= kv.WalkKeyBytes; op.IgnoreValue {
		x.looks -= int64(len(found.Value))
	}
	if x.looks < 0 {
		return kv.ErrLooksTooFar
	}
	return x.limits.admit(x.w, op)
}

// put writes one key; checkPut has passed.
func (x *executor) put(op *kv.PutOp) *kv.PutResult {
	value, leaseID := op.Value, op.Lease
	if op.IgnoreValue || op.IgnoreLease {
		// An earlier operation of the transaction may have deleted the key since the check: proposers refuse most such
		// transactions, but not a nested deletion of all keys. Then the put keeps an empty value, the same on all members; etcd
		// panics.
		if now := x.w.Get(op.Key); now != nil && op.IgnoreValue {
			value = now.Value
		}
		if now := x.w.Get(op.Key); now != nil && op.IgnoreLease {
			leaseID = now.Lease
		}
	}
	_, prev, whole := x.w.PutWithin(op.Key, value, leaseID, x.accountOf(op.PrevKV))
	x.did.puts++
	if !whole {
		x.events.giveUp()
	}
	x.counts.PutBytes.Add(uint64(len(op.Key) + len(value)))
	var was kv.LeaseID
	if prev != nil {
		was = prev.Lease
	}
	if was != leaseID {
		if was != 0 {
			x.w.Fail(x.leases.Detach(&x.rows, was, op.Key))
		}
		if leaseID != 0 {
			x.leases.Attach(&x.rows, leaseID, op.Key)
		}
	}
	res := x.newPutResult()
	if op.PrevKV && prev != nil && x.answer.takes([]kv.KeyValue{*prev}, whole) {
		res.Prev = prev
	}
	return res
}

func (x *executor) newPutResult() *kv.PutResult {
	if len(x.puts) == cap(x.puts) { // transactions have more puts than there are entries
		x.puts = make([]kv.PutResult, 0, 2*cap(x.puts)+1)
	}
	x.puts = x.puts[:len(x.puts)+1]
	return &x.puts[len(x.puts)-1]
}

// accountOf bounds the previous pair that a change of one key keeps: for the watchers, or else for the answer.
func (x *executor) accountOf(prevKV bool) kv.Account {
	if !x.events.wanted && prevKV && x.answer.given() {
		return &fixedAccount{left: x.answer.left}
	}
	return x.events.account()
}

func (x *executor) delete(op *kv.DeleteOp) *kv.DeleteResult {
	var account kv.Account
	if len(op.End) == 0 || x.events.wanted || op.PrevKV && x.answer.given() { // a range is not read without an account
		account = x.accountOf(op.PrevKV)
	}
	return x.deleteWithin(op, account, 0)
}

// deleteWithin is delete whose events have values only as far as account has room for them. The keys of the lease that ends
// were read from its rows.
func (x *executor) deleteWithin(op *kv.DeleteOp, account kv.Account, ends kv.LeaseID) *kv.DeleteResult {
	were, whole := x.w.DeleteRange(op.Key, op.End, account)
	x.did.deletes++
	if !whole {
		x.events.giveUp()
	}
	for i := range were {
		switch were[i].Lease {
		case 0:
		case ends:
			x.leases.Drop(&x.rows, ends, were[i].Key)
		default:
			x.w.Fail(x.leases.Detach(&x.rows, were[i].Lease, were[i].Key))
		}
	}
	res := &kv.DeleteResult{Deleted: int64(len(were))}
	if op.PrevKV && len(were) > 0 && x.answer.takes(were, whole) {
		res.Prevs = were
	}
	return res
}

func (x *executor) grant(op *kv.LeaseGrantOp, res *kv.Result) {
	switch {
	case op.ID == 0:
		res.Err = kv.ErrBadCommand
	case op.TTLSeconds > kv.MaxLeaseTTLSeconds:
		res.Err = kv.ErrLeaseTTLTooBig
	case x.leases.Exists(op.ID):
		res.Err = kv.ErrLeaseExists
	default:
		x.leases.Grant(&x.rows, op.ID, op.TTLSeconds)
		x.counts.LeasesGranted.Add(1)
		x.counts.GrantedTTLs.Observe(float64(op.TTLSeconds))
		res.Lease = &kv.LeaseResult{ID: op.ID, TTLSeconds: op.TTLSeconds}
	}
}

// EndBytes bounds the bytes of keys, with EndKeyBytes for each, that one command of the end of a lease deletes; the last key
// may pass it. A lease with no more ends at one revision. The bound belongs to the format of commands: every member must have
// the same.
const (
	EndBytes    = 32 << 10 // other writes wait for one part
	EndKeyBytes = 64
)

// revoke deletes the keys of a lease in their order, all at one revision, and then the lease. Of a large one it deletes the
// first keys: the lease is ending then, and the leader proposes the other parts until it is gone (ADR 59).
func (x *executor) revoke(id kv.LeaseID) error {
	if !x.leases.Exists(id) {
		return kv.ErrLeaseNotFound
	}
	left, last := cmp.Or(x.endBytes, EndBytes), []byte(nil)
	toVisit, _ := x.leases.KeysSize(id)
	visit := func(key []byte) bool {
		left -= int64(len(key)) + EndKeyBytes
		last = append(last[:0], key...)
		x.deleteWithin(&kv.DeleteOp{Key: key}, x.events.account(), id)
		toVisit--
		return toVisit > 0 && x.w.Err() == nil && left > 0
	}
	if toVisit > 0 { // rows that were deleted, and are still on disk, may follow the last one
		_ = x.VisitKeys(id, visit)
	}
	if x.w.Err() != nil {
		return nil // the engine failed to read: Commit returns the error, and none of this becomes visible
	}
	if keys, _ := x.leases.KeysSize(id); keys > 0 {
		x.leases.End(&x.rows, id, last)
		return nil
	}
	x.leases.Revoke(&x.rows, id)
	x.counts.LeasesRevoked.Add(1)
	return nil
}

// keys are the keys of leases with the changes of the batch under way.
func (x *executor) keys() leasedKeys { return leasedKeys{x.leases, x} }

// VisitKeys implements lease.Visitor. An error fails the batch: the effect of a command must not depend on it.
func (x *executor) VisitKeys(id kv.LeaseID, visit func(key []byte) bool) error {
	err := x.rows.VisitKeys(id, visit)
	x.w.Fail(err)
	return err
}
