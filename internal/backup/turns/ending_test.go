package turns_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/backup/turns"
)

// manifest works until the manifest of a base is put, and returns that operation, which does not end.
func (m *member) manifest() (op turns.Op, found bool) {
	for range 100 {
		m.run(m.machine.Pause())
		for len(m.begun) > 0 {
			op := m.begun[0]
			if op.Kind == turns.Ship && op.Ship.Kind == ship.Put && strings.HasPrefix(op.Ship.Name, backup.BasePrefix) {
				m.begun = m.begun[1:]
				return op, true
			}
			m.endFirst()
		}
	}
	return op, false
}

// Ensure that a member that ends reports a base whose manifest it has put, or puts then: nobody else would, and the cluster would take it
// for one that somebody else made. It does so once, and not for longer than it puts what waits.
func TestMachine_End_base(t *testing.T) {
	for _, row := range []struct {
		name   string
		fails  error
		silent bool
	}{{"it is heard", nil, false}, {"nobody leads", errors.New("no leader"), false}, {"no answer", nil, true}} {
		m := newMember(t)
		m.entries = append(m.entries, false)
		manifest, found := m.manifest()
		if !found {
			t.Fatal("no base is made")
		}
		m.machine.End(m.now)
		m.take()
		m.end()
		if said := m.said[len(m.said)-1]; said.BaseHash != ([32]byte{}) || slices.Contains(m.kinds(), turns.Close) {
			t.Fatalf("%s: %+v, %v", row.name, said, m.kinds())
		}
		before := len(m.said)
		m.fails = row.fails
		m.machine.Done(m.now, &manifest.Ship, ship.Outcome{})
		m.take()
		if row.silent {
			m.run(4 * time.Second)
			if !slices.Contains(m.kinds(), turns.Cancel) {
				t.Errorf("%s: %v", row.name, m.kinds())
			}
		}
		m.end()
		m.work(time.Second)
		if n := len(m.said) - before; n != 1 || m.said[before].BaseHash == ([32]byte{}) || m.said[before].Base.Index == 0 {
			t.Errorf("%s: %d reports, %+v", row.name, n, m.said[before:])
		}
		if !m.machine.Rests() {
			t.Errorf("%s: it does not end", row.name)
		}
	}
}
