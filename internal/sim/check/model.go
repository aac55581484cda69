package check

import (
	"bytes"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/permits"
)

// Model is the reference store: the meaning of commands, written as simply as possible, with all history kept.
type Model struct {
	Revision  kv.Revision
	Compacted kv.Revision
	keys      map[string][]version // every version of every key, oldest first
	live      []string             // the keys that exist now, sorted
	leases    map[kv.LeaseID]*modelLease
	jobs      modelJobs
	users     permits.Users
	quotas    quotas
	changed   bool         // users were changed by the command that is being applied
	Events    [][]kv.Event // Events[r-2] are the changes of revision r
	events    []kv.Event   // of the command that is being applied
	next      kv.Revision
	endBytes  int64  // limit of a revocation, which deletes one key more; see endKeyBytes; zero: none
	parts     uint64 // revocations that left keys of their lease
}

// version is a key from one revision on; deleted keys have a zero Version.
type version struct {
	at kv.Revision
	kv kv.KeyValue
}

// modelJobs is the version of each row of a membership job.
type modelJobs map[uint64]uint64

func (m modelJobs) write(op *kv.JobOp) error {
	version, found := m[op.ID]
	switch {
	case op.Version == 0 && found:
		return kv.ErrJobExists
	case op.Version != 0 && version != op.Version: // zero if there is none
		return kv.ErrJobConflict
	}
	m[op.ID] = op.Version + 1
	for _, id := range op.Prune {
		delete(m, id)
	}
	return nil
}

type modelLease struct {
	ttl    int64
	keys   []string // sorted
	ending bool     // it has lost some of its keys, and can only be revoked
}

// takes reports whether keys may be attached to a lease.
func (m *Model) takes(id kv.LeaseID) bool { return m.leases[id] != nil && !m.leases[id].ending }

// NewModel returns an empty store.
func NewModel() *Model {
	return &Model{
		Revision: 1, keys: map[string][]version{}, leases: map[kv.LeaseID]*modelLease{}, jobs: modelJobs{},
		quotas: quotas{rules: map[string]*modelRule{}},
		users:  permits.NewUsers(),
	}
}

// At returns a key as it was at a revision.
func (m *Model) At(key string, revision kv.Revision) (kv.KeyValue, bool) {
	versions := m.keys[key]
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].at <= revision {
			return versions[i].kv, versions[i].kv.Version != 0
		}
	}
	return kv.KeyValue{}, false
}

// Live returns the sorted keys that exist now in the range.
func (m *Model) Live(key, end []byte) []string {
	lo, _ := slices.BinarySearch(m.live, string(key))
	if len(end) == 0 {
		if lo < len(m.live) && m.live[lo] == string(key) {
			return m.live[lo : lo+1]
		}
		return nil
	}
	hi := len(m.live)
	if !bytes.Equal(end, []byte{0}) {
		hi, _ = slices.BinarySearch(m.live, string(end))
	}
	return m.live[lo:max(lo, hi)]
}

// Keys returns all keys that ever existed, sorted.
func (m *Model) Keys() []string { return slices.Sorted(maps.Keys(m.keys)) }

// Leases returns the ids of all leases, sorted.
func (m *Model) Leases() []kv.LeaseID {
	ids := make([]kv.LeaseID, 0, len(m.leases))
	for id := range m.leases {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// apply runs a command at the next revision, or at an exact one; sessions and duplicates are handled elsewhere.
func (m *Model) apply(c *kv.Command, exact kv.Revision) kv.Result {
	m.events, m.changed, m.next, m.quotas.wants = nil, false, m.Revision+1, map[string]*[2]int64{}
	if exact != 0 {
		m.next = exact
	}
	r := kv.Result{Err: m.permit(c)}
	switch {
	case r.Err != nil:
	case c.Put != nil:
		if r.Err = m.checkPut(c.Put); r.Err == nil {
			r.Put, r.Err = m.put(c.Put)
		}
	case c.Delete != nil:
		r.Delete = m.remove(c.Delete)
	case c.Txn != nil:
		if r.Err = m.checkTxn(c.Txn); r.Err == nil {
			r.Txn = m.txn(c.Txn)
		}
	case c.Compact != nil:
		r.Err = m.compact(c.Compact.Revision)
	case c.LeaseGrant != nil:
		r.Lease, r.Err = m.grant(c.LeaseGrant)
	case c.LeaseRevoke != nil:
		r.Err = m.revoke(c.LeaseRevoke.ID)
	case c.Job != nil:
		r.Err = m.jobs.write(c.Job)
	case c.Limit != nil:
		r.Err = m.limit(c.Limit)
	case c.Auth != nil:
		m.users, m.changed, r.Err = m.users.Change(c.Auth)
	}
	if len(m.events) > 0 {
		for m.Revision++; m.Revision < m.next; m.Revision++ {
			m.Events = append(m.Events, nil) // a revision that no command got
		}
		m.Events = append(m.Events, m.events)
	}
	r.Revision = m.Revision
	return r
}

// permit returns an error if the user of a command may not run it.
func (m *Model) permit(c *kv.Command) error {
	return m.users.Permit(c, func(id kv.LeaseID) []string {
		if l := m.leases[id]; l != nil {
			return l.keys
		}
		return nil
	})
}

func (m *Model) now(key string) (kv.KeyValue, bool) { return m.At(key, kv.MaxRevision) }

func (m *Model) put(op *kv.PutOp) (*kv.PutResult, error) {
	old, exists := m.now(string(op.Key))
	lease, value := op.Lease, op.Value
	if op.IgnoreValue || op.IgnoreLease {
		if !exists {
			return nil, kv.ErrKeyNotFound
		}
		if op.IgnoreValue {
			value = old.Value
		}
		if op.IgnoreLease {
			lease = old.Lease
		}
	}
	if lease != 0 && !m.takes(lease) && !(op.IgnoreLease && m.leases[lease] != nil) {
		return nil, kv.ErrLeaseNotFound
	}
	created := m.next
	if exists {
		created = old.CreateRevision
		m.detach(old.Lease, string(op.Key))
	} else {
		at, _ := slices.BinarySearch(m.live, string(op.Key))
		m.live = slices.Insert(m.live, at, string(op.Key))
	}
	now := kv.KeyValue{Key: op.Key, Value: value, CreateRevision: created, ModRevision: m.next,
		Version: old.Version + 1, Lease: lease}
	if lease != 0 {
		keys := &m.leases[lease].keys
		if at, found := slices.BinarySearch(*keys, string(op.Key)); !found {
			*keys = slices.Insert(*keys, at, string(op.Key))
		}
	}
	m.change(kv.EventPut, now)
	result := &kv.PutResult{}
	if op.PrevKV && exists {
		result.Prev = &old
	}
	return result, nil
}

func (m *Model) detach(lease kv.LeaseID, key string) {
	if l := m.leases[lease]; l != nil {
		if at, found := slices.BinarySearch(l.keys, key); found {
			l.keys = slices.Delete(l.keys, at, at+1)
		}
	}
}

func (m *Model) change(kind kv.EventKind, now kv.KeyValue) {
	key := string(now.Key)
	m.keys[key] = append(m.keys[key], version{m.next, now})
	m.events = append(m.events, kv.Event{Kind: kind, KV: now})
}

func (m *Model) remove(op *kv.DeleteOp) *kv.DeleteResult {
	result := &kv.DeleteResult{}
	for _, key := range slices.Clone(m.Live(op.Key, op.End)) {
		old := m.erase(key)
		result.Deleted++
		if op.PrevKV {
			result.Prevs = append(result.Prevs, old)
		}
	}
	return result
}

func (m *Model) erase(key string) kv.KeyValue {
	old, _ := m.now(key)
	m.detach(old.Lease, key)
	at, _ := slices.BinarySearch(m.live, key)
	m.live = slices.Delete(m.live, at, at+1)
	m.change(kv.EventDelete, kv.KeyValue{Key: []byte(key), ModRevision: m.next})
	return old
}

// checkTxn rejects a whole Txn before it changes anything. The workload never sets IgnoreValue or IgnoreLease, so only a
// missing lease or a quota can be the reason.
func (m *Model) checkTxn(t *kv.TxnOp) error {
	list := t.Else
	if m.holds(t) {
		list = t.Then
	}
	for i := range list {
		switch op := &list[i]; {
		case op.Put != nil:
			if err := m.checkPut(op.Put); err != nil {
				return err
			}
		case op.Txn != nil:
			if err := m.checkTxn(op.Txn); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Model) holds(t *kv.TxnOp) bool {
	for i := range t.Compares {
		c := &t.Compares[i]
		now, _ := m.now(string(c.Key))
		var order int
		switch c.Target {
		case kv.CompareVersion:
			order = compareInts(now.Version, c.Number)
		case kv.CompareCreate:
			order = compareInts(int64(now.CreateRevision), c.Number)
		case kv.CompareMod:
			if now.Version == 0 {
				now.ModRevision = 0
			}
			order = compareInts(int64(now.ModRevision), c.Number)
		case kv.CompareLease:
			order = compareInts(int64(now.Lease), c.Number)
		case kv.CompareValue:
			if now.Version == 0 {
				return false
			}
			order = bytes.Compare(now.Value, c.Value)
		}
		ok := map[kv.CompareResult]bool{kv.CompareEqual: order == 0, kv.CompareGreater: order > 0,
			kv.CompareLess: order < 0, kv.CompareNotEqual: order != 0}[c.Result]
		if !ok {
			return false
		}
	}
	return true
}

func compareInts(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (m *Model) txn(t *kv.TxnOp) *kv.TxnResult {
	result := &kv.TxnResult{Succeeded: m.holds(t)}
	list := t.Else
	if result.Succeeded {
		list = t.Then
	}
	for i := range list {
		var r kv.OpResult
		switch op := &list[i]; {
		case op.Put != nil:
			r.Put, _ = m.put(op.Put)
		case op.Delete != nil:
			r.Delete = m.remove(op.Delete)
		case op.Range != nil:
			r.Range = m.read(op.Range)
		case op.Txn != nil:
			r.Txn = m.txn(op.Txn)
		}
		result.Responses = append(result.Responses, r)
	}
	return result
}

func (m *Model) read(op *kv.RangeOp) *kv.RangeResult {
	result := &kv.RangeResult{}
	for _, key := range m.Live(op.Key, op.End) {
		now, _ := m.now(key)
		result.Count++
		result.KVs = append(result.KVs, now)
	}
	return result
}

func (m *Model) compact(revision kv.Revision) error {
	switch {
	case revision <= m.Compacted:
		return kv.ErrCompacted
	case revision > m.Revision:
		return kv.ErrFutureRevision
	}
	m.Compacted = revision
	return nil
}

func (m *Model) grant(op *kv.LeaseGrantOp) (*kv.LeaseResult, error) {
	if m.leases[op.ID] != nil {
		return nil, kv.ErrLeaseExists
	}
	m.leases[op.ID] = &modelLease{ttl: op.TTLSeconds}
	return &kv.LeaseResult{ID: op.ID, TTLSeconds: op.TTLSeconds}, nil
}

// endKeyBytes is what a key counts besides its length.
const endKeyBytes = 64

func (m *Model) revoke(id kv.LeaseID) error {
	l := m.leases[id]
	if l == nil {
		return kv.ErrLeaseNotFound
	}
	left := m.endBytes
	for _, key := range slices.Clone(l.keys) {
		m.erase(key)
		if left -= int64(len(key)) + endKeyBytes; m.endBytes > 0 && left <= 0 {
			break
		}
	}
	if l.ending = len(l.keys) > 0; l.ending {
		m.parts++
		return nil
	}
	delete(m.leases, id)
	return nil
}
