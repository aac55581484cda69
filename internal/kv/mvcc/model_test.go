package mvcc_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// model is the store as a list of all changes, with answers computed in the slow way.
type model struct {
	history []modelChange
	rev     kv.Revision
	compact kv.Revision
}

type modelChange struct {
	rev     kv.Rev
	deleted bool
	kv      kv.KeyValue
}

func newModel() *model { return &model{rev: 1, compact: -1} }

func (m *model) clone() *model {
	c := *m
	c.history = slices.Clone(m.history)
	return &c
}

// at returns the keys of a range at rev.
func (m *model) at(key, end []byte, rev kv.Revision) []kv.KeyValue {
	newest := map[string]modelChange{}
	for _, c := range m.history {
		if c.rev.Main <= rev && modelInRange(c.kv.Key, key, end) {
			newest[string(c.kv.Key)] = c
		}
	}
	var out []kv.KeyValue
	for _, c := range newest {
		if !c.deleted {
			out = append(out, c.kv)
		}
	}
	sort.Slice(out, func(i, j int) bool { return bytes.Compare(out[i].Key, out[j].Key) < 0 })
	return out
}

func modelInRange(k, key, end []byte) bool {
	if len(end) == 0 {
		return string(k) == string(key)
	}
	return string(k) >= string(key) && (string(end) == "\x00" || string(k) < string(end))
}

func (m *model) one(key []byte, rev kv.Revision) *kv.KeyValue {
	if found := m.at(key, nil, rev); len(found) == 1 {
		return &found[0]
	}
	return nil
}

func (m *model) put(rev kv.Rev, key, value []byte, lease kv.LeaseID) {
	n := kv.KeyValue{
		Key: bytes.Clone(key), Value: bytes.Clone(value),
		CreateRevision: rev.Main, ModRevision: rev.Main, Version: 1, Lease: lease,
	}
	if before := m.one(key, kv.MaxRevision); before != nil {
		n.CreateRevision, n.Version = before.CreateRevision, before.Version+1
	}
	m.history = append(m.history, modelChange{rev: rev, kv: n})
}

func (m *model) del(rev kv.Rev, key []byte) {
	m.history = append(m.history, modelChange{rev: rev, deleted: true, kv: kv.KeyValue{Key: key, ModRevision: rev.Main}})
}

func (m *model) check(rev kv.Revision) (kv.Revision, error) {
	switch {
	case rev <= 0:
		return m.rev, nil
	case rev > m.rev:
		return 0, kv.ErrFutureRevision
	case rev < m.compact:
		return 0, kv.ErrCompacted
	}
	return rev, nil
}

// readAs is Range by the text of etcd-compat: fetch, filter, sort, cut.
func (m *model) readAs(op *kv.RangeOp) (kv.RangeResult, error) {
	rev, err := m.check(op.Revision)
	if err != nil {
		return kv.RangeResult{}, err
	}
	all := m.at(op.Key, op.End, rev)
	result := kv.RangeResult{Count: int64(len(all))}
	if op.CountOnly {
		return result, nil
	}
	filtered := op.MinMod != 0 || op.MaxMod != 0 || op.MinCreate != 0 || op.MaxCreate != 0
	if op.Order == kv.SortNone && !filtered && op.Limit > 0 && int64(len(all)) > op.Limit+1 {
		all = all[:op.Limit+1]
	}
	all = slices.DeleteFunc(all, func(k kv.KeyValue) bool {
		return op.MaxMod != 0 && k.ModRevision > op.MaxMod || op.MinMod != 0 && k.ModRevision < op.MinMod ||
			op.MaxCreate != 0 && k.CreateRevision > op.MaxCreate || op.MinCreate != 0 && k.CreateRevision < op.MinCreate
	})
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if op.Order == kv.SortDescend {
			a, b = b, a
		}
		switch op.Target {
		case kv.SortByVersion:
			return a.Version < b.Version
		case kv.SortByCreate:
			return a.CreateRevision < b.CreateRevision
		case kv.SortByMod:
			return a.ModRevision < b.ModRevision
		case kv.SortByValue:
			return bytes.Compare(a.Value, b.Value) < 0
		}
		return bytes.Compare(a.Key, b.Key) < 0
	})
	if op.Limit > 0 && int64(len(all)) > op.Limit {
		all, result.More = all[:op.Limit], true
	}
	if op.KeysOnly {
		for i := range all {
			all[i].Value = nil
			if op.Target != kv.SortByValue {
				all[i].Lease = 0
			}
		}
	}
	result.KVs = all
	return result, nil
}

// holds also returns the looks of the comparison.
func (m *model) holds(c *kv.Compare) (holds bool, looks int64) {
	found := m.at(c.Key, c.End, kv.MaxRevision)
	if len(c.End) == 0 && len(found) == 0 {
		looks = kv.WalkKeyBytes
	}
	for _, k := range found {
		if looks += kv.WalkKeyBytes; c.Target != kv.CompareMod {
			looks += int64(len(k.Value))
		}
		if !m.holdsFor(c, k) {
			return false, looks
		}
	}
	if len(found) > 0 {
		return true, looks
	}
	return c.Target != kv.CompareValue && m.holdsFor(c, kv.KeyValue{}), looks
}

func (m *model) holdsFor(c *kv.Compare, k kv.KeyValue) bool {
	order := map[kv.CompareTarget]int{
		kv.CompareVersion: cmp.Compare(k.Version, c.Number),
		kv.CompareCreate:  cmp.Compare(int64(k.CreateRevision), c.Number),
		kv.CompareMod:     cmp.Compare(int64(k.ModRevision), c.Number),
		kv.CompareLease:   cmp.Compare(int64(k.Lease), c.Number),
		kv.CompareValue:   bytes.Compare(k.Value, c.Value),
	}[c.Target]
	return map[kv.CompareResult]bool{
		kv.CompareEqual: order == 0, kv.CompareNotEqual: order != 0,
		kv.CompareGreater: order > 0, kv.CompareLess: order < 0,
	}[c.Result]
}

// events returns the changes of one revision.
func (m *model) events(rev kv.Revision, ranges []mvcc.KeyRange, prev bool, compact kv.Revision) []kv.Event {
	var out []kv.Event
	for i, c := range m.history {
		if c.rev.Main != rev || len(ranges) > 0 && !slices.ContainsFunc(ranges, func(r mvcc.KeyRange) bool {
			return modelInRange(c.kv.Key, r.Key, r.End)
		}) {
			continue
		}
		e := kv.Event{KV: c.kv}
		if c.deleted {
			e.Kind = kv.EventDelete
		}
		if prev && rev-1 >= compact && (c.deleted || c.kv.Version > 1) {
			for _, old := range m.history[:i] {
				if bytes.Equal(old.kv.Key, c.kv.Key) && old.rev.Main < rev {
					e.Prev = nil
					if !old.deleted {
						before := old.kv
						e.Prev = &before
					}
				}
			}
		}
		out = append(out, e)
	}
	return out
}

var equal = gocmp.Options{cmpopts.EquateEmpty()}

func diff(want, got any) string { return gocmp.Diff(want, got, equal) }

// driver runs the same random commands on a store and the model.
type driver struct {
	t     *testing.T
	r     *rand.Rand
	model *model
	store *mvcc.Store
}

func (d *driver) key() []byte {
	// Short keys over few bytes, 0x00 and 0xff among them, so that ranges and escapes meet.
	key := make([]byte, 1+d.r.IntN(3))
	for i := range key {
		key[i] = []byte{0, 1, 'a', 'b', 0xff}[d.r.IntN(5)]
	}
	return key
}

func (d *driver) end(key []byte) []byte {
	switch d.r.IntN(4) {
	case 0:
		return nil
	case 1:
		return []byte{0}
	}
	return d.key()
}

func (d *driver) revision() kv.Revision { return kv.Revision(d.r.Int64N(int64(d.model.rev)+4)) - 1 }

func (d *driver) rangeOp() *kv.RangeOp {
	op := &kv.RangeOp{Key: d.key(), Revision: d.revision()}
	op.End = d.end(op.Key)
	if d.r.IntN(2) == 0 {
		op.Revision = 0
	}
	if d.r.IntN(2) == 0 {
		op.Limit = d.r.Int64N(6)
	}
	if d.r.IntN(3) == 0 {
		op.Order, op.Target = kv.SortOrder(d.r.IntN(3)), kv.SortTarget(d.r.IntN(5))
	}
	op.KeysOnly, op.CountOnly = d.r.IntN(5) == 0, d.r.IntN(4) == 0
	if d.r.IntN(4) == 0 {
		for _, bound := range []*kv.Revision{&op.MinMod, &op.MaxMod, &op.MinCreate, &op.MaxCreate} {
			if d.r.IntN(3) == 0 {
				*bound = d.revision()
			}
		}
	}
	return op
}

func (d *driver) compare() *kv.Compare {
	c := &kv.Compare{
		Key: d.key(), Target: kv.CompareTarget(d.r.IntN(5)), Result: kv.CompareResult(d.r.IntN(4)),
		Number: d.r.Int64N(4), Value: []byte{byte(d.r.IntN(3))},
	}
	if d.r.IntN(2) == 0 {
		c.End = d.end(c.Key)
	}
	return c
}

// check compares a comparison with the model's: its result, its looks, and that it returns false if these are too many.
func (d *driver) check(c *kv.Compare, holds func(left *int64) bool) {
	d.t.Helper()
	want, looks := d.model.holds(c)
	left := looks
	d.same(fmt.Sprintf("check %+v", c), want, holds(&left))
	d.same(fmt.Sprintf("left by the check %+v", c), int64(0), left)
	if left = looks - 1; looks > 0 {
		d.same(fmt.Sprintf("check %+v without room", c), false, holds(&left))
		d.same("over", true, left < 0)
	}
}

// command makes some random changes and reads of one command in the writer.
func (d *driver) command(w *mvcc.Writer) {
	w.BeginCommand()
	rev := kv.Rev{Main: d.model.rev + 1}
	for range 1 + d.r.IntN(3) {
		switch d.r.IntN(7) {
		case 0, 1, 2:
			key, value, lease := d.key(), []byte{byte(d.r.IntN(3))}, kv.LeaseID(d.r.IntN(3))
			if d.r.IntN(80) == 0 {
				value = bytes.Repeat(value, 1100) // long enough to be stored apart from its key
			}
			want := d.model.one(key, kv.MaxRevision)
			d.model.put(rev, key, value, lease)
			put, prev := w.Put(key, value, lease)
			rev.Sub++
			d.model.rev = rev.Main
			d.same("put", *d.model.one(key, kv.MaxRevision), put)
			d.same("put's prev", want, prev)
		case 3:
			key := d.key()
			end := d.end(key)
			want := d.model.at(key, end, kv.MaxRevision)
			for _, k := range want {
				d.model.del(rev, k.Key)
				rev.Sub++
				d.model.rev = rev.Main
			}
			were, whole := w.DeleteRange(key, end, unlimited{})
			d.same("deleted", want, were)
			if !whole {
				d.t.Error("deleted without values")
			}
		case 4:
			op := d.rangeOp()
			want, wantErr := d.model.readAs(op)
			got, err := w.Range(op, nil)
			d.same(fmt.Sprintf("writer range %+v", op), want, got)
			d.sameErr(wantErr, err)
		case 5:
			c := d.compare()
			d.check(c, func(left *int64) bool { return w.Check(c, left) })
		case 6:
			key := d.key()
			d.same("get", d.model.one(key, kv.MaxRevision), w.Get(key))
		}
	}
	var want []kv.Event
	if rev.Sub > 0 {
		want = replacing(d.model.events(rev.Main, nil, true, -1))
	}
	d.same("events of the command", want, w.EndCommand())
	d.same("revision", d.model.rev, w.Revision())
}

func (d *driver) same(what string, want, got any) {
	d.t.Helper()
	if text := diff(want, got); text != "" {
		d.t.Fatalf("%s at revision %d, compacted %d (-want +got):\n%s", what, d.model.rev, d.model.compact, text)
	}
}

func (d *driver) sameErr(want, got error) {
	d.t.Helper()
	if !errors.Is(got, want) || want == nil && got != nil {
		d.t.Fatalf("got error %v, want %v", got, want)
	}
}

// batch runs some commands and commits.
func (d *driver) batch() {
	w := d.store.Begin()
	for range d.r.IntN(6) {
		d.command(w)
		if d.r.IntN(80) == 0 {
			rev := d.revision()
			var want error
			switch {
			case rev <= d.model.compact:
				want = kv.ErrCompacted
			case rev > d.model.rev:
				want = kv.ErrFutureRevision
			}
			d.sameErr(want, w.Compact(rev))
			if want == nil {
				d.model.compact = rev
			}
		}
	}
	if err := w.Commit(); err != nil {
		d.t.Fatal(err)
	}
}

// reads compares the reads of the committed store.
func (d *driver) reads() {
	d.same("published revision", d.model.rev, d.store.Revision())
	d.same("compact revision", d.model.compact, d.store.CompactRevision())
	d.same("key count", int64(len(d.model.at([]byte{0}, []byte{0}, d.model.rev))), d.store.KeyCount())
	for range 3 {
		op := d.rangeOp()
		want, wantErr := d.model.readAs(op)
		got, current, err := d.store.Range(op)
		d.same(fmt.Sprintf("range %+v", op), want, got)
		d.sameErr(wantErr, err)
		d.same("current", d.model.rev, current)
		got, current, err = rangeInto(d.t, d.store, op)
		d.same(fmt.Sprintf("range %+v into rows", op), want, got)
		d.sameErr(wantErr, err)
		d.same("current", d.model.rev, current)
		c := d.compare()
		d.check(c, func(left *int64) bool {
			holds, err := d.store.CheckAt(c, 0, unlimited{}, left)
			d.sameErr(nil, err)
			return holds
		})
	}
	d.moment()
	d.catchUp()
	d.past()
}

// moment reads the store as it was between two changes of one command.
func (d *driver) moment() {
	d.t.Helper()
	if len(d.model.history) == 0 {
		return
	}
	i := d.r.IntN(len(d.model.history))
	rev := d.model.history[i].rev
	if rev.Main-1 < d.model.compact {
		return
	}
	then := &model{history: d.model.history[:i], rev: d.model.rev, compact: -1}
	op := d.rangeOp()
	op.Revision = 0
	want, _ := then.readAs(op)
	got, err := d.store.Within(rev.Main, rev.Sub).Range(op, nil)
	d.same(fmt.Sprintf("range %+v before change %v", op, rev), want, got)
	d.sameErr(nil, err)
}

func (d *driver) catchUp() {
	q := mvcc.EventQuery{From: d.revision(), Prev: d.r.IntN(2) == 0, MaxRevisions: 1 + d.r.IntN(20)}
	if d.r.IntN(2) == 0 {
		q.To = d.revision()
	}
	if d.r.IntN(2) == 0 {
		q.MaxBytes = 1 + d.r.IntN(2000)
	}
	for range d.r.IntN(3) {
		key := d.key()
		q.Ranges = append(q.Ranges, mvcc.KeyRange{Key: key, End: d.end(key)})
	}
	got, next, err := d.store.EventsSince(q)
	if q.To <= 0 || q.To > d.model.rev {
		q.To = d.model.rev
	}
	if q.From <= q.To && q.From < d.model.compact {
		d.sameErr(kv.ErrCompacted, err)
		return
	}
	d.sameErr(nil, err)
	var want []mvcc.Change
	bytes, full := 0, false
	for rev := max(q.From, 0); rev < next && rev <= q.To; rev++ {
		if events := d.model.events(rev, q.Ranges, q.Prev, d.model.compact); len(events) > 0 && !full {
			want = append(want, mvcc.Change{Revision: rev, Events: events})
			bytes += eventsBytes(events)
			full = q.MaxBytes > 0 && bytes >= q.MaxBytes
		}
	}
	d.same(fmt.Sprintf("events %+v", q), want, got)
	if len(want) < q.MaxRevisions && !full && q.From <= q.To {
		d.same("all of the events", q.To+1, next)
	}
}

// replacing gives the events of one revision the pairs that they replaced, those of the same revision, too.
func replacing(events []kv.Event) []kv.Event {
	for i := range events {
		for j := range events[:i] {
			if !bytes.Equal(events[j].KV.Key, events[i].KV.Key) {
				continue
			}
			if events[i].Prev = nil; events[j].Kind == kv.EventPut {
				events[i].Prev = &events[j].KV
			}
		}
	}
	return events
}

func eventsBytes(events []kv.Event) (n int) {
	for i := range events {
		n += mvcc.EventOverhead + len(events[i].KV.Key) + len(events[i].KV.Value)
		if prev := events[i].Prev; prev != nil {
			n += len(prev.Key) + len(prev.Value)
		}
	}
	return n
}
