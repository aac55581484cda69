package apply

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// rowMap is a batch of changes, as a map of all rows.
type rowMap map[string]string

func (r rowMap) Set(key, value []byte) { r[string(key)] = string(value) }
func (r rowMap) DeleteRaw(key []byte)  { delete(r, string(key)) }

func (r rowMap) DeleteRawRange(lower, upper []byte) {
	maps.DeleteFunc(r, func(key, _ string) bool { return key >= string(lower) && key < string(upper) })
}

func (r rowMap) keys() []string { return slices.Sorted(maps.Keys(r)) }

func TestAlarmTable_change(t *testing.T) {
	var table alarmTable
	rows := rowMap{}
	noSpace, corrupt := kv.Alarm{Member: 2, Kind: kv.AlarmNoSpace}, kv.Alarm{Member: 1, Kind: kv.AlarmCorrupt}
	for _, alarm := range []kv.Alarm{noSpace, corrupt, noSpace} {
		if got := table.change(rows, &kv.AlarmOp{Activate: true, Member: alarm.Member, Kind: alarm.Kind}); !slices.Equal(got, []kv.Alarm{alarm}) {
			t.Errorf("raise %v: got %v", alarm, got)
		}
	}
	if got := table.list(); !slices.Equal(got, []kv.Alarm{corrupt, noSpace}) || len(rows) != 2 {
		t.Errorf("got %v, rows %q, want two alarms sorted by member", got, rows.keys())
	}
	if !table.noSpace || table.corrupt {
		t.Errorf("got noSpace %v, corrupt %v: the mark of one member stops nobody else", table.noSpace, table.corrupt)
	}
	if got := table.change(rows, &kv.AlarmOp{Activate: true}); len(got) != 0 {
		t.Errorf("raise no kind: got %v", got)
	}
	if got := table.change(rows, &kv.AlarmOp{Member: 2}); !slices.Equal(got, []kv.Alarm{noSpace}) || table.noSpace || len(rows) != 1 {
		t.Errorf("disarm all of member 2: got %v, noSpace %v, rows %q", got, table.noSpace, rows.keys())
	}
	table.change(rows, &kv.AlarmOp{Activate: true, Kind: kv.AlarmCorrupt})
	if !table.corrupt {
		t.Error("a mark of no member must stop writes")
	}
}

func TestMemberTable_bury(t *testing.T) {
	table := memberTable{published: map[consensus.MemberID]kv.PublishOp{}}
	rows := rowMap{}
	table.publish(rows, &kv.PublishOp{Member: 7, Name: "m7"})
	if got, found := table.publishedBy(7); !found || got.Name != "m7" {
		t.Fatalf("got %+v, %v", got, found)
	}
	if !table.bury(rows, 7, 30) || !table.bury(rows, 3, 31) || table.bury(rows, 7, 32) {
		t.Error("each member is removed once")
	}
	table.publish(rows, &kv.PublishOp{Member: 7, Name: "m7"})
	if _, found := table.publishedBy(7); found {
		t.Error("a removed member published something")
	}
	if index, removed := table.removed(7); !removed || index != 30 {
		t.Errorf("got %d, %v, want the first entry that removed it", index, removed)
	}
	if got := table.tombstones(); !slices.Equal(got, []Tombstone{{3, 31}, {7, 30}}) {
		t.Errorf("got %v, want them sorted by member", got)
	}
	want := []string{string(memberRow(rowTombstone, 3)), string(memberRow(rowTombstone, 7))}
	if diff := cmp.Diff(want, rows.keys()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestJobTable_write(t *testing.T) {
	var table jobTable
	rows := rowMap{}
	for _, row := range []struct {
		name string
		op   kv.JobOp
		want error
	}{
		{"no id", kv.JobOp{}, kv.ErrBadCommand},
		{"prunes itself", kv.JobOp{ID: 1, Prune: []uint64{1}}, kv.ErrBadCommand},
		{"the first", kv.JobOp{ID: 2, Body: []byte("a")}, nil},
		{"exists", kv.JobOp{ID: 2}, kv.ErrJobExists},
		{"another version", kv.JobOp{ID: 2, Version: 2}, kv.ErrJobConflict},
		{"unknown", kv.JobOp{ID: 1, Version: 1}, kv.ErrJobConflict},
		{"its version", kv.JobOp{ID: 2, Version: 1, Body: []byte("b")}, nil},
		{"prunes the other", kv.JobOp{ID: 1, Body: []byte("c"), Prune: []uint64{2, 9}}, nil},
	} {
		if got := table.write(rows, &row.op); !errors.Is(got, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
	if diff := cmp.Diff([]Job{{ID: 1, Version: 1, Body: []byte("c")}}, table.list()); diff != "" || len(rows) != 1 {
		t.Errorf("rows %q (-want +got):\n%s", rows.keys(), diff)
	}
}

func TestSessionTable(t *testing.T) {
	members := &memberTable{}
	table, rows := newSessionTable(nil, members), rowMap{}
	first, second := sessionID(7, 1), sessionID(7, 2)
	if err := table.applyOpen(rows, &kv.SessionOpenOp{Member: 7, Number: 1}); err != nil || !table.isOpen(first) {
		t.Fatalf("got %v, want an open session", err)
	}
	id := consensus.ProposalID{Session: first, Sequence: 1_000}
	if !table.awaits(id) {
		t.Error("a proposal without a result is awaited")
	}
	want := kv.Result{Revision: 9, Err: kv.ErrAborted}
	table.keep(table.find(first), id.Sequence, &want, &answer{})
	if got, err := table.first(table.find(first), id); err != nil || !cmp.Equal(got, want, cmp.Comparer(errors.Is)) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if done, retired := table.decided(id); !done || retired || table.awaits(id) {
		t.Errorf("got done %v, retired %v", done, retired)
	}
	table.flush(rows)
	if table.bytesOf(first) == 0 || table.bytesOf(first) != table.kept.Load() {
		t.Errorf("got %d bytes of the session, %d of all", table.bytesOf(first), table.kept.Load())
	}
	// The next session of the member ends the first for ever, with its results.
	if err := table.applyOpen(rows, &kv.SessionOpenOp{Member: 7, Number: 2}); err != nil || !table.ended(first) {
		t.Errorf("got %v, want the first session ended", err)
	}
	if done, retired := table.decided(id); done || !retired || table.kept.Load() != 0 {
		t.Errorf("got done %v, retired %v, %d bytes", done, retired, table.kept.Load())
	}
	if err := table.applyOpen(rows, &kv.SessionOpenOp{Member: 7, Number: 1}); !errors.Is(err, kv.ErrSessionUnknown) {
		t.Errorf("open a retired session: got %v", err)
	}
	members.bury(rows, 7, 50)
	table.forgetNumber(rows, 7)
	if got := table.orphans(); !slices.Equal(got, []consensus.SessionID{second}) {
		t.Errorf("got orphans %v, want %v", got, second)
	}
	if table.mayOpen(sessionID(7, 3)) {
		t.Error("a removed member may open a session")
	}
}

func TestEventBuffer_add(t *testing.T) {
	one := []kv.Event{{KV: kv.KeyValue{Key: []byte("k"), Value: make([]byte, 1000)}}}
	b := newEventBuffer(0)
	b.begin(false)
	if b.add(one); b.events != nil {
		t.Error("events were kept although nobody watches")
	}
	b.begin(true)
	b.add(one)
	if b.command(); len(b.events) != 1 || b.account().left != maxEventBytes-1001 {
		t.Errorf("got %d events, room for %d bytes", len(b.events), b.account().left)
	}
	one[0].Prev = &kv.KeyValue{Value: make([]byte, maxEventBytes)}
	if b.add(one); b.wanted || b.events != nil {
		t.Error("more than maxEventBytes were kept")
	}
	b = newEventBuffer(1 << 20) // with little --memory
	b.begin(true)
	one[0].Prev.Value = make([]byte, 1<<20)
	if b.add(one); b.wanted || b.events != nil {
		t.Error("more were kept than what may be")
	}
}

func TestPosition(t *testing.T) {
	var p position
	p.finish(consensus.Position{Index: 4, Term: 1})
	p.begin(6)
	if p.last().Index != 4 || !p.hasBegun(6) || p.hasBegun(7) {
		t.Errorf("got %v, begun 6 %v, 7 %v", p.last(), p.hasBegun(6), p.hasBegun(7))
	}
}
