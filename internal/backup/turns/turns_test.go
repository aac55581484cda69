package turns_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/backup/turns"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// member is a member with a machine. Entry i has the sum i, and revision 1 more than the one before unless it is the backup's own.
type member struct {
	t       *testing.T
	now     time.Time
	row     kv.BackupRow
	machine *turns.Machine
	entries []bool                     // applied since entry 100: is it the backup's own
	size    int                        // bytes of each
	reports map[consensus.Index][]byte // that are entries
	behind  int                        // so many of the last entries are not applied here yet
	random  []byte                     // their payloads
	begun   []turns.Op
	said    []kv.BackupProgress
	fails   error     // of reports
	pruning []ship.Op // operations of retention, which do not end by themselves
}

const first = 100 // the last entry before those that the feed has

func newMember(t *testing.T) *member {
	m := &member{t: t, now: time.UnixMilli(1_790_000_000_000), row: kv.BackupRow{Generation: 2, Turn: 4, Member: 3, Policy: kv.BackupPolicy{On: true,
		Place: "file:///b", BaseSeconds: 3600, SealMillis: 1000}}}
	m.machine = turns.New(turns.Config{Cluster: 7, Member: 3, HeldBytes: 1 << 20}, m)
	return m
}

// After implements turns.Feed.
func (m *member) After(index consensus.Index, generation uint64) []*ship.Batch {
	if generation != m.row.Generation {
		m.t.Errorf("entries are asked for under generation %d of the policy, and it is %d", generation, m.row.Generation)
	}
	b := &ship.Batch{Before: uint64(index)}
	for i := index; int(i-first) < len(m.entries)-m.behind; i++ {
		b.Items = append(b.Items, backup.Item{Entry: consensus.Entry{Index: i + 1, Term: 1, Kind: consensus.EntryCommand,
			Payload: m.payload(i)}, Revision: 1, Sum: uint64(i + 1)})
		if b.Own++; !m.entries[i-first] {
			b.Own = 0
		}
	}
	if len(b.Items) == 0 {
		return nil
	}
	if n := len(b.Items) / 2; n > 0 { // two batches
		first := b.First(n)
		b.Before, b.Items, b.Own = b.Items[n-1].Sum, b.Items[n:], min(b.Own, len(b.Items)-n)
		return []*ship.Batch{first, b}
	}
	return []*ship.Batch{b}
}

// payload has no bytes that can be packed, if it is not small.
func (m *member) payload(i consensus.Index) []byte {
	if report := m.reports[i+1]; report != nil {
		return report
	}
	if m.random == nil {
		m.random = make([]byte, 12_000_000)
		_, _ = rand.NewChaCha8([32]byte{}).Read(m.random)
	}
	at := int(i-first) * m.size
	return m.random[at : at+m.size]
}

// Last implements turns.Feed.
func (m *member) Last() (backup.Point, bool) {
	index := first + len(m.entries) - m.behind
	return backup.Point{Index: consensus.Index(index), Sum: uint64(index)}, true
}

// Sum implements turns.Feed.
func (m *member) Sum(index consensus.Index) (uint64, bool) { return uint64(index), index >= first }

// run lets time pass, and takes what the machine begins.
func (m *member) run(d time.Duration) {
	for end := m.now.Add(d); m.now.Before(end); m.now = m.now.Add(m.machine.Pause()) {
		m.machine.Look(m.now, &m.row)
		m.take()
	}
}

func (m *member) take() {
	for _, op := range m.machine.Take() {
		if op.Kind == turns.Report {
			m.said = append(m.said, op.Command.Backup.Progress)
			m.entries = append(m.entries, true)
			if m.reports == nil {
				m.reports = map[consensus.Index][]byte{}
			}
			m.reports[consensus.Index(first+len(m.entries))] = op.Command.Append(nil)
			if m.behind > 0 {
				m.behind++
			}
		}
		m.begun = append(m.begun, op)
	}
}

// end ends all operations that were begun, and those that follow.
func (m *member) end() {
	for len(m.begun) > 0 {
		m.endFirst()
	}
}

// endFirst ends the first operation that was begun, and takes those that follow.
func (m *member) endFirst() {
	op := m.begun[0]
	m.begun = m.begun[1:]
	switch op.Kind {
	case turns.Open:
		m.machine.Opened(m.now, &backup.Catalog{Cluster: 7}, nil)
	case turns.Report:
		m.machine.Reported(m.now, m.fails)
	case turns.Close:
		m.machine.Closed(m.now)
	case turns.Ship:
		if op.Ship.Kind == ship.Prune {
			m.pruning = append(m.pruning, op.Ship)
			return
		}
		outcome := ship.Outcome{}
		if op.Ship.Kind == ship.Checkpoint {
			index, _ := m.Last()
			outcome.Made = &backup.Manifest{Index: index.Index, Sum: backup.Hex(index.Sum), Revision: 1, Level: 1}
		}
		m.machine.Done(m.now, &op.Ship, outcome)
	}
	m.take()
}

// kinds are those of the operations that were begun and did not end.
func (m *member) kinds() (kinds []turns.Kind) {
	for i := range m.begun {
		kinds = append(kinds, m.begun[i].Kind)
	}
	return kinds
}

// work runs for a while in which each operation ends.
func (m *member) work(d time.Duration) {
	for end := m.now.Add(d); m.now.Before(end); {
		m.run(m.machine.Pause())
		m.end()
	}
}

// Ensure that a turn begins with what the place has, ships, and reports that; that an idle one reports each ten seconds and puts
// nothing; and that nothing happens when the turn is of another member.
func TestMachine_turn(t *testing.T) {
	m := newMember(t)
	m.row.Member = 2
	m.run(time.Minute)
	if len(m.begun) > 0 {
		t.Fatalf("in another member's turn: %+v", m.begun)
	}
	m.row.Member = 3
	m.entries = append(m.entries, false, false)
	m.work(3 * time.Second)
	if last := m.said[len(m.said)-1]; last.Restorable.Index != 103 || last.Base.Index != 103 || last.BaseHash == ([32]byte{}) || last.Trouble != "" {
		t.Fatalf("it said %+v", m.said)
	}
	said := len(m.said)
	for range 600 {
		m.run(m.machine.Pause())
		for _, op := range m.begun {
			if op.Kind == turns.Ship {
				t.Fatalf("nothing was written but reports: %+v", op)
			}
		}
		m.end()
	}
	if n := len(m.said) - said; n < 5 || n > 7 {
		t.Errorf("%d reports in an idle minute", n)
	}
	if last := m.said[len(m.said)-1]; last.Restorable.Time < last.At-10_000 || last.Restorable.Index != 103 {
		t.Errorf("nothing was written since: %+v", last)
	}
	m.entries = append(m.entries, false)
	m.work(13 * time.Second)
	if last := m.said[len(m.said)-1]; last.Restorable.Index < m.written() {
		t.Errorf("an entry was written: %+v", last)
	}
}

// written is the index of the last entry that is not the backup's own.
func (m *member) written() uint64 {
	return uint64(first + len(m.entries) - slices.Index(backwards(m.entries), false))
}

func backwards(own []bool) []bool {
	own = slices.Clone(own)
	slices.Reverse(own)
	return own
}

// Ensure that a turn that is over, by the row or by a refused report, begins nothing more, waits for what is under way, closes
// the place, and is not begun again.
func TestMachine_over(t *testing.T) {
	for name, over := range map[string]func(m *member){
		"the row":          func(m *member) { m.row.Turn, m.row.Member = 5, 2 },
		"another turn":     func(m *member) { m.row.Policy.Place, m.row.Turn, m.row.Member = "file:///c", 5, 0 },
		"a refused report": func(m *member) { m.machine.Reported(m.now, kv.ErrBadCommand) },
	} {
		m := newMember(t)
		m.work(3 * time.Second)
		m.entries = append(m.entries, false)
		m.run(12 * time.Second) // a put and a report are under way
		if got := m.kinds(); !slices.Equal(got, []turns.Kind{turns.Ship, turns.Report}) {
			t.Fatalf("%s: %v", name, got)
		}
		put := m.begun[0].Ship
		m.begun = nil
		over(m)
		m.entries = append(m.entries, false)
		m.run(20 * time.Second)
		if got := m.kinds(); !slices.Equal(got, []turns.Kind{turns.Cancel}) {
			t.Fatalf("%s: %v", name, got)
		}
		m.begun = nil
		m.machine.Done(m.now, &put, ship.Outcome{Result: ship.Failed, Why: "canceled"})
		if name != "a refused report" {
			m.machine.Reported(m.now, errors.New("canceled"))
		}
		m.run(20 * time.Second)
		if got := m.kinds(); !slices.Equal(got, []turns.Kind{turns.Close}) || m.machine.Rests() {
			t.Fatalf("%s: %v", name, got)
		}
		m.end()
		m.run(time.Minute)
		if len(m.begun) > 0 || !m.machine.Rests() {
			t.Fatalf("%s: %v", name, m.begun)
		}
		m.row.Turn, m.row.Member = 6, 3
		m.run(2 * time.Second)
		if len(m.begun) == 0 || m.begun[0].Kind != turns.Open {
			t.Errorf("%s: in its next turn: %v", name, m.begun)
		}
	}
}

// Ensure that a turn that is over while the place is being opened opens and closes nothing else.
func TestMachine_overWhileOpening(t *testing.T) {
	m := newMember(t)
	m.run(time.Second)
	m.row.Turn, m.row.Member = 5, 2
	m.machine.Reported(m.now, nil)
	m.begun = nil
	m.run(time.Second)
	m.machine.Opened(m.now, &backup.Catalog{Cluster: 7}, nil)
	m.run(time.Second)
	if got := m.kinds(); !slices.Equal(got, []turns.Kind{turns.Cancel, turns.Close}) {
		t.Errorf("got %v", got)
	}
}

// Ensure that a member reports while it lists a place with very many objects, and calls that trouble only after ten minutes.
func TestMachine_opens(t *testing.T) {
	m := newMember(t)
	for range 12 * 60 {
		m.run(time.Second)
		if at := slices.IndexFunc(m.begun, func(op turns.Op) bool { return op.Kind == turns.Report }); at >= 0 {
			m.begun = slices.Delete(m.begun, at, at+1)
			m.machine.Reported(m.now, nil)
		}
	}
	if len(m.said) < 70 {
		t.Errorf("%d reports in twelve minutes", len(m.said))
	}
	for i := range m.said {
		if took := m.said[i].At - m.said[0].At; (m.said[i].Trouble != "") != (took >= 600_000) {
			t.Errorf("after %d ms: %q", took, m.said[i].Trouble)
		}
	}
}

// Ensure that a member does not go on in the clear where the cluster's backup is encrypted.
func TestMachine_sealedPlace(t *testing.T) {
	m := newMember(t)
	m.run(time.Second)
	at := slices.IndexFunc(m.begun, func(op turns.Op) bool { return op.Kind == turns.Open })
	m.begun = slices.Delete(m.begun, at, at+1)
	m.machine.Opened(m.now, &backup.Catalog{Cluster: 7, Bases: []backup.Base{{BaseName: backup.BaseName{Cluster: 7, Set: 9,
		Point: backup.Point{Index: 90}}}}}, nil)
	m.take()
	m.run(2 * time.Second)
	m.end()
	if slices.ContainsFunc(m.begun, func(op turns.Op) bool { return op.Kind == turns.Ship }) || m.machine.Ships() ||
		!strings.Contains(m.said[len(m.said)-1].Trouble, "no recipients") {
		t.Errorf("%v, said %+v", m.kinds(), m.said)
	}
}

// Ensure that a report says whether the member may not use the place, in words that fit, until it may.
func TestMachine_refused(t *testing.T) {
	m := newMember(t)
	long := strings.Repeat("ä", kv.MaxBackupTroubleBytes)
	for i, err := range []error{&turns.Barred{Err: errors.New("--backup-places " + long)}, errors.New("no such directory")} {
		m.run(time.Second)
		at := slices.IndexFunc(m.begun, func(op turns.Op) bool { return op.Kind == turns.Open })
		if at < 0 {
			t.Fatalf("the place is not opened: %v", m.kinds())
		}
		m.begun = slices.Delete(m.begun, at, at+1)
		m.machine.Opened(m.now, nil, err)
		m.take()
		m.end()
		m.run(time.Duration(4500+i*7000) * time.Millisecond)
		m.end()
		last := m.said[len(m.said)-1]
		if last.Refused != (i == 0) || !last.Valid() || i == 0 && !strings.Contains(last.Trouble, "--backup-places") {
			t.Errorf("%d: it said %+v", i, last)
		}
	}
}

// Ensure that a place that does not open is tried again, and one that does not answer is reported as trouble, both without an
// end of the turn.
func TestMachine_trouble(t *testing.T) {
	m := newMember(t)
	for range 3 {
		m.run(time.Second)
		at := slices.IndexFunc(m.begun, func(op turns.Op) bool { return op.Kind == turns.Open })
		if at < 0 {
			t.Fatalf("it is not tried again: %v", m.kinds())
		}
		m.begun = slices.Delete(m.begun, at, at+1)
		m.machine.Opened(m.now, nil, errors.New("no such directory"))
		m.take()
		m.end()
		m.run(4500 * time.Millisecond)
		m.end()
	}
	if last := m.said[len(m.said)-1]; last.Trouble != "no such directory" {
		t.Fatalf("it said %+v", m.said)
	}
	m.work(time.Minute)
	if last := m.said[len(m.said)-1]; last.Trouble != "" {
		t.Fatalf("it said %+v", last)
	}
	m.entries = append(m.entries, false)
	for range 75 { // reports end, and the put does not
		m.run(time.Second)
		if at := slices.IndexFunc(m.begun, func(op turns.Op) bool { return op.Kind == turns.Report }); at >= 0 {
			m.begun = slices.Delete(m.begun, at, at+1)
			m.machine.Reported(m.now, nil)
		}
	}
	if last := m.said[len(m.said)-1]; !strings.Contains(last.Trouble, "has not answered for 1m0s") {
		t.Errorf("the place hangs, and it said %+v", last)
	}
}

// Ensure that a member whose place takes nothing holds no more than it may, that the rest waits where it is kept, and that all of
// it is shipped, without a gap, once the place takes it.
func TestMachine_waits(t *testing.T) {
	m := newMember(t)
	m.work(3 * time.Second)
	m.size = 100_000
	for range 100 { // ten times as much as may wait
		m.entries = append(m.entries, false)
		m.run(200 * time.Millisecond)
		if held := m.machine.Held(); held > 1<<20+1<<10 { // heads of segments
			t.Fatalf("after %d entries %d bytes wait", len(m.entries), held)
		}
	}
	m.work(32 * time.Second)
	if last := m.said[len(m.said)-1]; last.Gaps > 0 || last.Restorable.Index < m.written() {
		t.Errorf("it said %+v", last)
	}
}

// Ensure that a member that ends puts what waits, also its own entries, closes, and begins no turn; and that it does not wait for
// ever.
func TestMachine_End(t *testing.T) {
	for _, answers := range []bool{true, false} {
		m := newMember(t)
		m.work(3 * time.Second)
		m.entries = append(m.entries, false, true)
		m.machine.End(m.now)
		m.take()
		if got := m.kinds(); !slices.Equal(got, []turns.Kind{turns.Ship}) {
			t.Fatalf("got %v", got)
		}
		segment, err := backup.ParseSegment(m.begun[0].Ship.Name)
		if last, _ := m.Last(); err != nil || segment.End.Index != last.Index {
			t.Fatalf("got %v, %v", segment, err)
		}
		if answers {
			m.end()
		} else {
			m.run(4 * time.Second)
			if got := m.kinds(); !slices.Equal(got, []turns.Kind{turns.Ship, turns.Cancel}) {
				t.Fatalf("got %v", got)
			}
			m.end()
		}
		m.run(time.Minute)
		if !m.machine.Rests() || len(m.begun) > 0 {
			t.Errorf("answers %t: %v", answers, m.begun)
		}
	}
}

// look answers an operation of retention with a page of a list that goes on, and reports whether there was one.
func (m *member) look() bool {
	if len(m.pruning) == 0 {
		return false
	}
	op := m.pruning[0]
	m.pruning = m.pruning[1:]
	m.machine.Done(m.now, &op, ship.Outcome{Pruned: prune.Outcome{Listed: []prune.Listed{{Name: op.Prune.After + "a"}}, More: true}})
	m.take()
	return true
}

// Ensure that a member that is cut off from the cluster, and not from the place, begins no round of retention, and asks for nothing
// in one that is under way half a minute after the last report that the cluster took: its rule may be replaced.
func TestMachine_cutOff(t *testing.T) {
	cut := errors.New("no leader")
	m := newMember(t)
	m.row.Policy.Keep, m.fails = "1h", cut
	m.work(5 * time.Minute)
	if m.look() || m.said[len(m.said)-1].Base.Index == 0 {
		t.Fatalf("no report was taken: %+v", m.said[len(m.said)-1])
	}
	m.fails = nil
	m.work(11 * time.Second)
	for i := range 60 {
		if m.work(time.Second); !m.look() {
			t.Fatalf("after %d pages the round has ended", i)
		}
	}
	m.fails = cut
	pages := 0
	for range 120 {
		if m.work(time.Second); m.look() {
			pages++
		}
	}
	if pages < 15 || pages > 31 || len(m.pruning) > 0 {
		t.Errorf("in two minutes without a report %d pages were asked for, and %d wait", pages, len(m.pruning))
	}
	m.fails = nil
	if m.work(15 * time.Minute); !m.look() {
		t.Error("retention does not go on")
	}
}

// Ensure that a member that ships, and is behind the leader, does not say that the state of now can be restored: only that up to
// the last report that it has applied.
func TestMachine_behind(t *testing.T) {
	m := newMember(t)
	m.entries = append(m.entries, false, false)
	m.work(25 * time.Second)
	since := m.now.UnixMilli()
	m.entries, m.behind = append(m.entries, false), 1
	m.work(time.Minute)
	if last := m.said[len(m.said)-1]; last.Restorable.Time > since || last.Restorable.Time < since-20_000 || last.At-since < 40_000 {
		t.Errorf("behind since %d, it said %+v", since, last)
	}
	m.behind = 0
	m.work(25 * time.Second)
	if last := m.said[len(m.said)-1]; last.Restorable.Time < last.At-10_000 || last.Restorable.Index < m.written() {
		t.Errorf("it follows again: %+v", last)
	}
}
