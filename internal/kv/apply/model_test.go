package apply_test

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// model is the state machine written as plainly as possible: every revision is a whole map. It follows etcd's documentation and
// docs/fast-path.md, not the code.
type model struct {
	revision, compact kv.Revision
	now               map[string]kv.KeyValue
	then              map[kv.Revision]map[string]kv.KeyValue
	leases            map[kv.LeaseID]bool
	alarms            map[kv.Alarm]bool
	open, retired     map[consensus.SessionID]bool
	highest           map[consensus.MemberID]uint64
	results           map[consensus.ProposalID]kv.Result
	commands          map[consensus.ProposalID]kv.Command // of the results
	jobs              map[uint64]apply.Job
	events            []kv.Event
}

func newModel() *model {
	m := &model{
		revision: 1, compact: -1, now: map[string]kv.KeyValue{}, then: map[kv.Revision]map[string]kv.KeyValue{},
		leases: map[kv.LeaseID]bool{}, alarms: map[kv.Alarm]bool{}, open: map[consensus.SessionID]bool{},
		jobs: map[uint64]apply.Job{}, retired: map[consensus.SessionID]bool{}, highest: map[consensus.MemberID]uint64{}, results: map[consensus.ProposalID]kv.Result{},
		commands: map[consensus.ProposalID]kv.Command{},
	}
	m.then[1] = map[string]kv.KeyValue{}
	return m
}

func (m *model) apply(e *consensus.Entry, cmd kv.Command) kv.Result {
	session := e.Proposal.Session
	if res, ok := m.results[e.Proposal]; ok {
		return res
	}
	if kv.Revision(e.ExactRevision) != 0 && kv.Revision(e.ExactRevision) <= m.revision {
		return kv.Result{Err: kv.ErrSkipped, Revision: m.revision}
	}
	if !e.Proposal.IsZero() && !m.open[session] && (cmd.SessionOpen == nil || session.Number <= m.highest[session.Member]) {
		return kv.Result{Err: kv.ErrSessionUnknown, Revision: m.revision}
	}
	if e.Kind == consensus.EntryAbort {
		m.results[e.Proposal] = kv.Result{Err: kv.ErrAborted, Revision: m.revision}
		return m.results[e.Proposal]
	}
	target := m.revision + 1
	if e.ExactRevision != 0 {
		target = kv.Revision(e.ExactRevision)
	}
	step := &modelStep{model: m, target: target}
	res := step.do(cmd)
	if step.wrote {
		m.revision = target
		m.then[target] = maps.Clone(m.now)
	}
	res.Revision = m.revision
	if !e.Proposal.IsZero() && m.open[session] {
		m.results[e.Proposal], m.commands[e.Proposal] = res, cmd
	}
	return res
}

// modelStep is one command under way.
type modelStep struct {
	*model
	target kv.Revision
	wrote  bool
}

func (s *modelStep) seen() kv.Revision {
	if s.wrote {
		return s.target
	}
	return s.revision
}

func (s *modelStep) raised(kind kv.AlarmKind) bool {
	for alarm := range s.alarms {
		if alarm.Kind == kind && (kind != kv.AlarmCorrupt || alarm.Member == 0) {
			return true
		}
	}
	return false
}

func (s *modelStep) do(cmd kv.Command) (res kv.Result) {
	puts := cmd.Put != nil || cmd.LeaseGrant != nil
	deletes := cmd.Delete != nil || cmd.Compact != nil || cmd.LeaseRevoke != nil
	if cmd.Txn != nil {
		puts, deletes = modelWrites(cmd.Txn)
	}
	switch {
	case s.raised(kv.AlarmCorrupt) && (puts || deletes):
		return kv.Result{Err: kv.ErrCorrupt}
	case s.raised(kv.AlarmNoSpace) && puts:
		return kv.Result{Err: kv.ErrNoSpace}
	case cmd.Put != nil:
		if res.Err = s.checkPut(cmd.Put); res.Err == nil {
			res.Put = s.put(cmd.Put)
		}
	case cmd.Delete != nil:
		res.Delete = s.delete(cmd.Delete)
	case cmd.Txn != nil:
		before := maps.Clone(s.now)
		if res.Err = s.checkTxn(cmd.Txn, before); res.Err == nil {
			res.Txn = s.txn(cmd.Txn, before)
		}
	case cmd.Compact != nil:
		switch {
		case cmd.Compact.Revision <= s.compact:
			res.Err = kv.ErrCompacted
		case cmd.Compact.Revision > s.revision:
			res.Err = kv.ErrFutureRevision
		default:
			s.compact = cmd.Compact.Revision
		}
	case cmd.LeaseGrant != nil:
		if s.leases[cmd.LeaseGrant.ID] {
			res.Err = kv.ErrLeaseExists
		} else {
			s.leases[cmd.LeaseGrant.ID] = true
			res.Lease = &kv.LeaseResult{ID: cmd.LeaseGrant.ID, TTLSeconds: cmd.LeaseGrant.TTLSeconds}
		}
	case cmd.LeaseRevoke != nil:
		res.Err = s.revoke(cmd.LeaseRevoke.ID)
	case cmd.Alarm != nil:
		res.Alarms = s.alarm(cmd.Alarm)
	case cmd.SessionOpen != nil:
		op := cmd.SessionOpen
		s.open[sessionOf(op.Member, op.Number)] = true
		s.highest[consensus.MemberID(op.Member)] = max(s.highest[consensus.MemberID(op.Member)], op.Number)
		for _, other := range slices.Collect(maps.Keys(s.open)) {
			if uint64(other.Member) == op.Member && other.Number != op.Number && !slices.Contains(op.Keep, other.Number) {
				s.retire(other)
			}
		}
	case cmd.SessionRetire != nil:
		s.retire(sessionOf(cmd.SessionRetire.Member, cmd.SessionRetire.Number))
	case cmd.Job != nil:
		res.Err = s.job(cmd.Job)
	}
	return res
}

func sessionOf(member, number uint64) consensus.SessionID {
	return consensus.SessionID{Member: consensus.MemberID(member), Number: number}
}

func (s *modelStep) retire(id consensus.SessionID) {
	delete(s.open, id)
	s.retired[id] = true
	s.highest[id.Member] = max(s.highest[id.Member], id.Number)
	maps.DeleteFunc(s.results, func(p consensus.ProposalID, _ kv.Result) bool { return p.Session == id })
}

func (s *modelStep) alarm(op *kv.AlarmOp) []kv.Alarm {
	if op.Activate {
		one := kv.Alarm{Member: op.Member, Kind: op.Kind}
		s.alarms[one] = true
		return []kv.Alarm{one}
	}
	touched := []kv.Alarm{}
	for one := range s.alarms {
		if one.Member == op.Member && one.Kind == op.Kind {
			touched = append(touched, one)
			delete(s.alarms, one)
		}
	}
	return touched
}

func (s *modelStep) job(op *kv.JobOp) error {
	row, there := s.jobs[op.ID]
	switch {
	case op.ID == 0, len(op.Body) > kv.MaxJobBytes, slices.Contains(op.Prune, op.ID):
		return kv.ErrBadCommand
	case there && op.Version == 0:
		return kv.ErrJobExists
	case row.Version != op.Version:
		return kv.ErrJobConflict
	}
	s.jobs[op.ID] = apply.Job{ID: op.ID, Version: op.Version + 1, Body: op.Body}
	for _, id := range op.Prune {
		delete(s.jobs, id)
	}
	return nil
}

func (s *modelStep) revoke(id kv.LeaseID) error {
	if !s.leases[id] {
		return kv.ErrLeaseNotFound
	}
	for _, key := range sortedKeys(s.now) {
		if s.now[key].Lease == id {
			s.delete(&kv.DeleteOp{Key: []byte(key)})
		}
	}
	delete(s.leases, id)
	return nil
}

func sortedKeys(state map[string]kv.KeyValue) []string { return slices.Sorted(maps.Keys(state)) }

func modelWrites(op *kv.TxnOp) (puts, deletes bool) {
	for _, o := range append(slices.Clone(op.Then), op.Else...) {
		p, d := o.Put != nil, o.Delete != nil
		if o.Txn != nil {
			p, d = modelWrites(o.Txn)
		}
		puts, deletes = puts || p, deletes || d
	}
	return puts, deletes
}

func (s *modelStep) checkPut(op *kv.PutOp) error {
	if op.Lease != 0 && !s.leases[op.Lease] {
		return kv.ErrLeaseNotFound
	}
	if _, ok := s.now[string(op.Key)]; !ok && (op.IgnoreValue || op.IgnoreLease) {
		return kv.ErrKeyNotFound
	}
	return nil
}

func (s *modelStep) put(op *kv.PutOp) *kv.PutResult {
	prev, had := s.now[string(op.Key)]
	next := kv.KeyValue{Key: op.Key, Value: op.Value, Lease: op.Lease, CreateRevision: s.target, ModRevision: s.target,
		Version: 1}
	if had {
		next.CreateRevision, next.Version = prev.CreateRevision, prev.Version+1
	}
	if op.IgnoreValue {
		next.Value = prev.Value
	}
	if op.IgnoreLease {
		next.Lease = prev.Lease
	}
	s.now[string(op.Key)], s.wrote = next, true
	ev := kv.Event{Kind: kv.EventPut, KV: next}
	res := &kv.PutResult{}
	if had {
		ev.Prev = s.before(string(op.Key))
		if op.PrevKV {
			res.Prev = &prev
		}
	}
	s.events = append(s.events, ev)
	return res
}

// before returns a key as it was before the command.
func (s *modelStep) before(key string) *kv.KeyValue {
	if was, ok := s.then[s.revision][key]; ok {
		return &was
	}
	return nil
}

func within(key string, start, end []byte) bool {
	switch {
	case len(end) == 0:
		return key == string(start)
	case key < string(start):
		return false
	}
	return len(end) == 1 && end[0] == 0 || key < string(end)
}

func (s *modelStep) delete(op *kv.DeleteOp) *kv.DeleteResult {
	res := &kv.DeleteResult{}
	for _, key := range sortedKeys(s.now) {
		if !within(key, op.Key, op.End) {
			continue
		}
		prev := s.now[key]
		delete(s.now, key)
		s.wrote = true
		s.events = append(s.events, kv.Event{Kind: kv.EventDelete,
			KV: kv.KeyValue{Key: []byte(key), ModRevision: s.target}, Prev: s.before(key)})
		res.Deleted++
		if op.PrevKV {
			res.Prevs = append(res.Prevs, prev)
		}
	}
	return res
}

func (s *modelStep) read(op *kv.RangeOp) *kv.RangeResult {
	state := s.now
	if op.Revision > 0 && op.Revision <= s.revision {
		state = s.then[op.Revision]
		for rev := op.Revision; state == nil; rev-- { // an exact entry passed over the revision
			state = s.then[rev]
		}
	}
	res := &kv.RangeResult{}
	for _, key := range sortedKeys(state) {
		if within(key, op.Key, op.End) {
			res.Count++
			res.KVs = append(res.KVs, state[key])
		}
	}
	return res
}

func (s *modelStep) list(op *kv.TxnOp, before map[string]kv.KeyValue) (bool, []kv.Op) {
	for _, c := range op.Compares {
		met, some := true, false
		for _, key := range sortedKeys(before) {
			if within(key, c.Key, c.End) {
				one := before[key]
				met, some = met && modelCompare(&c, &one), true
			}
		}
		if !some {
			met = c.Target != kv.CompareValue && modelCompare(&c, &kv.KeyValue{})
		}
		if !met {
			return false, op.Else
		}
	}
	return true, op.Then
}

func modelCompare(c *kv.Compare, one *kv.KeyValue) bool {
	numbers := map[kv.CompareTarget]int64{
		kv.CompareVersion: one.Version, kv.CompareCreate: int64(one.CreateRevision), kv.CompareMod: int64(one.ModRevision),
		kv.CompareLease: int64(one.Lease),
	}
	order := cmp.Compare(numbers[c.Target], c.Number)
	if c.Target == kv.CompareValue {
		order = bytes.Compare(one.Value, c.Value)
	}
	return map[kv.CompareResult]bool{
		kv.CompareEqual: order == 0, kv.CompareNotEqual: order != 0, kv.CompareGreater: order > 0, kv.CompareLess: order < 0,
	}[c.Result]
}

func (s *modelStep) checkTxn(op *kv.TxnOp, before map[string]kv.KeyValue) error {
	_, ops := s.list(op, before)
	for _, o := range ops {
		var err error
		switch {
		case o.Range != nil && o.Range.Revision > s.revision:
			err = kv.ErrFutureRevision
		case o.Range != nil && o.Range.Revision != 0 && o.Range.Revision < s.compact:
			err = kv.ErrCompacted
		case o.Put != nil:
			err = s.checkPut(o.Put)
		case o.Txn != nil:
			err = s.checkTxn(o.Txn, before)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *modelStep) txn(op *kv.TxnOp, before map[string]kv.KeyValue) *kv.TxnResult {
	succeeded, ops := s.list(op, before)
	res := &kv.TxnResult{Succeeded: succeeded}
	for _, o := range ops {
		var out kv.OpResult
		switch {
		case o.Range != nil:
			out.Range = s.read(o.Range)
		case o.Put != nil:
			out.Put = s.put(o.Put)
		case o.Delete != nil:
			out.Delete = s.delete(o.Delete)
		case o.Txn != nil:
			out.Txn = s.txn(o.Txn, before)
		}
		if out.Txn == nil {
			out.Revision = s.seen()
		}
		res.Responses = append(res.Responses, out)
	}
	return res
}
