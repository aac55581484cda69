package turns_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/backup/turns"
)

// hang begins a turn, lets a put of an entry of a size hang, ends the turn, and returns the put.
func (m *member) hang(size int) turns.Op {
	m.t.Helper()
	m.work(3 * time.Second)
	m.size = size
	m.entries = append(m.entries, false)
	m.run(5 * time.Second)
	at := slices.IndexFunc(m.begun, func(op turns.Op) bool { return op.Kind == turns.Ship })
	if at < 0 || m.begun[at].Ship.Kind != ship.Put {
		m.t.Fatalf("nothing is put: %v", m.kinds())
	}
	put := m.begun[at]
	m.begun = slices.Delete(m.begun, at, at+1)
	m.end() // of reports
	m.over()
	m.run(time.Second)
	if got := m.kinds(); !slices.Equal(got, []turns.Kind{turns.Cancel}) {
		m.t.Fatalf("the turn is over: %v", got)
	}
	m.begun = nil
	return put
}

// over gives the turn to another member.
func (m *member) over() { m.row.Turn, m.row.Member = m.row.Turn+1, 2 }

// again gives the next turn to the member.
func (m *member) again() { m.row.Turn, m.row.Member = m.row.Turn+1, 3 }

// Ensure that a turn ends though a put hangs, that the member ships in its next one meanwhile, within its memory, and that the
// end of the put, which has the number of another one now, changes nothing there.
func TestMachine_hangs(t *testing.T) {
	m := newMember(t)
	put := m.hang(100_000)
	m.run(25 * time.Second)
	if len(m.begun) > 0 || m.machine.GaveUp(&put) {
		t.Fatalf("before it is given up: %v", m.kinds())
	}
	m.run(6 * time.Second)
	if got := m.kinds(); !slices.Equal(got, []turns.Kind{turns.Close}) || !m.machine.GaveUp(&put) || m.machine.Hung() != 1 {
		t.Fatalf("it is given up: %v, %d hang", got, m.machine.Hung())
	}
	m.end()
	if held := m.machine.Held(); held != int64(len(put.Ship.Content)) || held == 0 {
		t.Errorf("%d bytes are held", held)
	}
	m.again()
	m.work(3 * time.Second)
	for range 60 {
		m.entries = append(m.entries, false)
		m.run(200 * time.Millisecond)
		if held := m.machine.Held(); held > 1<<20+2<<10 {
			t.Fatalf("%d bytes are held", held)
		}
	}
	before := m.kinds()
	m.machine.Late(m.now, &put)
	m.take()
	if got := m.kinds(); !slices.Equal(got, before) || m.machine.Hung() != 0 {
		t.Errorf("after its end: %v, %v before, %d hang", got, before, m.machine.Hung())
	}
	m.work(32 * time.Second)
	if last := m.said[len(m.said)-1]; last.Restorable.Index < m.written() {
		t.Errorf("it said %+v", last)
	}
}

// Ensure that a place that does not open holds no turn either, and that no turn begins while more than MostHungOpens of these hang,
// which hold the names that they have listed.
func TestMachine_hangs_open(t *testing.T) {
	m := newMember(t)
	hang := m.hangAll(func() (turns.Op, bool) {
		m.run(2 * time.Second)
		at := slices.IndexFunc(m.begun, func(op turns.Op) bool { return op.Kind == turns.Open })
		if at < 0 {
			return turns.Op{}, false
		}
		open := m.begun[at]
		m.begun = slices.Delete(m.begun, at, at+1)
		m.end()
		m.over()
		return open, true
	})
	if len(hang) != turns.MostHungOpens+1 {
		t.Errorf("%d hang", len(hang))
	}
}

// Ensure that no turn begins while more than MostHung operations hang.
func TestMachine_hangs_most(t *testing.T) {
	m := newMember(t)
	hang := m.hangAll(func() (op turns.Op, begun bool) {
		if m.run(2 * time.Second); len(m.begun) == 0 {
			return op, false
		}
		return m.hang(10), true
	})
	if len(hang) != turns.MostHung+1 {
		t.Errorf("%d hang", len(hang))
	}
}

// hangAll lets an operation hang in each turn until no turn begins, and wants one to begin once one of them has ended.
func (m *member) hangAll(hang func() (op turns.Op, begun bool)) (all []turns.Op) {
	m.t.Helper()
	for op, begun := hang(); begun; op, begun = hang() {
		all = append(all, op)
		m.run(32 * time.Second)
		m.end()
		if !m.machine.Rests() || len(all) > 2*turns.MostHung {
			m.t.Fatalf("%d hang, and it rests: %t", len(all), m.machine.Rests())
		}
		m.again()
	}
	if m.machine.Hung() != len(all) || len(m.begun) > 0 {
		m.t.Fatalf("%d hang, %d by the machine: %v", len(all), m.machine.Hung(), m.kinds())
	}
	m.machine.Late(m.now, &all[0])
	m.work(5 * time.Second)
	if m.machine.Rests() || m.said[len(m.said)-1].Base.Index == 0 {
		m.t.Errorf("one has ended: %+v", m.said[len(m.said)-1])
	}
	return all
}

// Ensure that no turn begins while what hangs holds more than half of the memory.
func TestMachine_hangs_memory(t *testing.T) {
	m := newMember(t)
	put := m.hang(600_000)
	m.run(31 * time.Second)
	m.end()
	m.again()
	m.run(time.Minute)
	if !m.machine.Rests() || len(m.begun) > 0 {
		t.Fatalf("%d of %d bytes hang: %v", m.machine.Held(), 1<<20, m.kinds())
	}
	m.machine.Late(m.now, &put)
	m.run(2 * time.Second)
	if m.machine.Rests() || m.machine.Held() != 0 {
		t.Errorf("it has ended: %v, %d bytes", m.kinds(), m.machine.Held())
	}
}

// Ensure that a member that ends waits for a place that hangs for some seconds only, also if the turn was over before, and for
// work on its own disk as long as that takes.
func TestMachine_hangs_End(t *testing.T) {
	m := newMember(t)
	m.work(3 * time.Second)
	m.entries = append(m.entries, false)
	m.machine.End(m.now)
	m.run(7500 * time.Millisecond)
	if m.machine.Rests() || m.machine.Hung() > 0 {
		t.Error("it did not wait")
	}
	m.run(time.Second)
	if at := len(m.begun) - 1; m.machine.Hung() != 1 || m.begun[at].Kind != turns.Close {
		t.Fatalf("%d hang: %v", m.machine.Hung(), m.kinds())
	}
	m.machine.Closed(m.now)
	m.run(time.Minute)
	if !m.machine.Rests() {
		t.Error("it does not end")
	}

	m = newMember(t)
	m.hang(0)
	m.run(10 * time.Second)
	m.machine.End(m.now)
	m.run(time.Second)
	if got := m.kinds(); !slices.Equal(got, []turns.Kind{turns.Close}) {
		t.Errorf("the turn was over: %v", got)
	}

	m = newMember(t)
	m.run(time.Second)
	for len(m.begun) > 0 && m.begun[0].Kind != turns.Ship {
		op := m.begun[0]
		m.begun = m.begun[1:]
		if op.Kind == turns.Open {
			m.machine.Opened(m.now, &backup.Catalog{Cluster: 7}, nil)
		} else {
			m.machine.Reported(m.now, nil)
		}
		m.run(time.Second)
	}
	if len(m.begun) == 0 || m.begun[0].Ship.Kind != ship.Checkpoint {
		t.Fatalf("no checkpoint is made: %v", m.kinds())
	}
	checkpoint := m.begun[0]
	m.machine.End(m.now)
	m.run(time.Hour)
	if m.machine.Rests() || m.machine.GaveUp(&checkpoint) {
		t.Error("a checkpoint was given up")
	}
}
