package apply

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// execute does one command. On a rejection res.Err is set and nothing was changed.
func (m *Machine) execute(cmd *kv.Command, res *kv.Result) {
	if res.Err = barred(cmd, m.noSpace, m.corrupt); res.Err != nil {
		return
	}
	switch {
	case cmd.Put != nil:
		if res.Err = m.checkPut(cmd.Put); res.Err == nil {
			res.Put = m.put(cmd.Put)
		}
	case cmd.Delete != nil:
		res.Delete = m.delete(cmd.Delete)
	case cmd.Txn != nil:
		m.txn(cmd.Txn, res)
	case cmd.Compact != nil:
		res.Err = m.batch.w.Compact(cmd.Compact.Revision)
	case cmd.LeaseGrant != nil:
		m.grant(cmd.LeaseGrant, res)
	case cmd.LeaseRevoke != nil:
		res.Err = m.revoke(cmd.LeaseRevoke.ID)
	case cmd.Alarm != nil:
		res.Alarms = m.alarm(cmd.Alarm)
	case cmd.Publish != nil:
		m.publish(cmd.Publish)
	case cmd.SessionOpen != nil:
		res.Err = m.openSession(cmd.SessionOpen)
	case cmd.SessionRetire != nil:
		m.retireSession(sessionID(cmd.SessionRetire.Member, cmd.SessionRetire.Number))
	case cmd.Job != nil:
		res.Err = m.writeJob(cmd.Job)
	}
}

// barred rejects what the raised alarms forbid (etcd-compat.md, 1.5). Both branches of a transaction count, so that the
// answer does not depend on its compares, as in etcd.
func barred(cmd *kv.Command, noSpace, corrupt bool) error {
	if !noSpace && !corrupt {
		return nil
	}
	grows := cmd.Put != nil || cmd.LeaseGrant != nil
	changes := grows || cmd.Delete != nil || cmd.Compact != nil || cmd.LeaseRevoke != nil
	if cmd.Txn != nil {
		puts, deletes := writes(cmd.Txn)
		grows, changes = puts, puts || deletes
	}
	switch {
	case corrupt && changes:
		return kv.ErrCorrupt
	case noSpace && grows:
		return kv.ErrNoSpace
	}
	return nil
}

// writes tells what a transaction may do, in any branch.
func writes(op *kv.TxnOp) (puts, deletes bool) {
	for _, branch := range [...][]kv.Op{op.Then, op.Else} {
		for i := range branch {
			puts = puts || branch[i].Put != nil
			deletes = deletes || branch[i].Delete != nil
			if branch[i].Txn != nil {
				p, d := writes(branch[i].Txn)
				puts, deletes = puts || p, deletes || d
			}
		}
	}
	return puts, deletes
}

func (m *Machine) checkPut(op *kv.PutOp) error {
	if op.Lease != 0 && !m.leases.Exists(op.Lease) {
		return kv.ErrLeaseNotFound
	}
	if (op.IgnoreValue || op.IgnoreLease) && m.batch.w.Get(op.Key) == nil {
		return kv.ErrKeyNotFound
	}
	return nil
}

// put writes one key; checkPut has passed.
func (m *Machine) put(op *kv.PutOp) *kv.PutResult {
	w := m.batch.w
	value, leaseID := op.Value, op.Lease
	if op.IgnoreValue || op.IgnoreLease {
		// Inside a transaction an earlier operation may have deleted the key since the check. Proposers refuse such
		// transactions; if one comes, what is to be kept is empty.
		if now := w.Get(op.Key); now != nil && op.IgnoreValue {
			value = now.Value
		}
		if now := w.Get(op.Key); now != nil && op.IgnoreLease {
			leaseID = now.Lease
		}
	}
	_, prev := w.Put(op.Key, value, leaseID)
	var was kv.LeaseID
	if prev != nil {
		was = prev.Lease
	}
	if was != leaseID {
		if was != 0 {
			m.leases.Detach(&m.batch.leases, was, op.Key)
		}
		if leaseID != 0 {
			m.leases.Attach(&m.batch.leases, leaseID, op.Key)
		}
	}
	res := m.newPutResult()
	if op.PrevKV && prev != nil && m.batch.answer.takes([]kv.KeyValue{*prev}, true) {
		res.Prev = prev
	}
	return res
}

func (m *Machine) newPutResult() *kv.PutResult {
	b := &m.batch
	if len(b.puts) == cap(b.puts) { // transactions have more puts than there are entries
		b.puts = make([]kv.PutResult, 0, 2*cap(b.puts)+1)
	}
	b.puts = b.puts[:len(b.puts)+1]
	return &b.puts[len(b.puts)-1]
}

func (m *Machine) delete(op *kv.DeleteOp) *kv.DeleteResult {
	b := &m.batch
	var room kv.Room
	switch {
	case b.wanted:
		room = &fixedRoom{left: maxEventBytes - b.eventBytes}
	case op.PrevKV && b.answer.given():
		room = &fixedRoom{left: b.answer.left}
	}
	were, whole := b.w.DeleteRange(op.Key, op.End, room)
	if !whole {
		b.giveUpEvents()
	}
	for i := range were {
		if were[i].Lease != 0 {
			m.leases.Detach(&b.leases, were[i].Lease, were[i].Key)
		}
	}
	res := &kv.DeleteResult{Deleted: int64(len(were))}
	if op.PrevKV && len(were) > 0 && b.answer.takes(were, whole) {
		res.Prevs = were
	}
	return res
}

func (m *Machine) grant(op *kv.LeaseGrantOp, res *kv.Result) {
	switch {
	case op.ID == 0:
		res.Err = kv.ErrBadCommand
	case op.TTLSeconds > kv.MaxLeaseTTLSeconds:
		res.Err = kv.ErrLeaseTTLTooBig
	case m.leases.Exists(op.ID):
		res.Err = kv.ErrLeaseExists
	default:
		m.leases.Grant(&m.batch.leases, op.ID, op.TTLSeconds)
		res.Lease = &kv.LeaseResult{ID: op.ID, TTLSeconds: op.TTLSeconds}
	}
}

// revoke deletes the keys of a lease in their order, all at one revision, and then the lease.
func (m *Machine) revoke(id kv.LeaseID) error {
	keys, found := m.leases.Keys(id)
	if !found {
		return kv.ErrLeaseNotFound
	}
	for _, key := range keys {
		m.delete(&kv.DeleteOp{Key: []byte(key)})
	}
	if m.batch.w.Err() != nil {
		return nil // the engine failed to read: Commit says so, and nothing of this becomes visible
	}
	m.leases.Revoke(&m.batch.leases, id)
	return nil
}

// alarm raises or disarms, and returns the alarms it was about: the raised one, also if it was raised before, and those
// that are disarmed now.
func (m *Machine) alarm(op *kv.AlarmOp) []kv.Alarm {
	touched := []kv.Alarm{}
	if op.Activate {
		if op.Kind == kv.AlarmNone {
			return touched
		}
		alarm := kv.Alarm{Member: op.Member, Kind: op.Kind}
		if at, found := slices.BinarySearchFunc(m.alarms, alarm, compareAlarms); !found {
			m.batch.w.Set(alarmRow(alarm), nil)
			m.setAlarms(slices.Insert(slices.Clone(m.alarms), at, alarm))
		}
		return append(touched, alarm)
	}
	var left []kv.Alarm
	for _, alarm := range m.alarms {
		if (op.Member == 0 || op.Member == alarm.Member) && (op.Kind == kv.AlarmNone || op.Kind == alarm.Kind) {
			m.batch.w.DeleteRaw(alarmRow(alarm))
			touched = append(touched, alarm)
		} else {
			left = append(left, alarm)
		}
	}
	m.setAlarms(left)
	return touched
}

func compareAlarms(a, b kv.Alarm) int {
	return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Kind, b.Kind))
}

func (m *Machine) setAlarms(alarms []kv.Alarm) {
	m.mu.Lock()
	m.alarms = alarms
	m.mu.Unlock()
	m.noteAlarms()
}

func (m *Machine) noteAlarms() { m.noSpace, m.corrupt = kindsOf(m.alarms) }

// kindsOf tells what alarms forbid. A member that is marked corrupt stops serving by itself, and the others go on; only the
// mark of no member, which says that nobody knows who is right, stops all writes.
func kindsOf(alarms []kv.Alarm) (noSpace, corrupt bool) {
	for _, alarm := range alarms {
		noSpace = noSpace || alarm.Kind == kv.AlarmNoSpace
		corrupt = corrupt || alarm.Kind == kv.AlarmCorrupt && alarm.Member == 0
	}
	return noSpace, corrupt
}

// publish keeps what a member says of itself; a removed one has nothing to say any more.
func (m *Machine) publish(op *kv.PublishOp) {
	id := consensus.MemberID(op.Member)
	if _, removed := m.Removed(id); removed {
		return
	}
	cmd := kv.Command{Publish: op}
	m.batch.w.Set(memberRow(rowPublished, id), cmd.Append(nil))
	m.setPublished(id, op)
}

// setPublished keeps op, or forgets what the member published if op is nil.
func (m *Machine) setPublished(id consensus.MemberID, op *kv.PublishOp) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if op == nil {
		delete(m.published, id)
		return
	}
	m.published[id] = *op
}
