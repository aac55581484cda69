package model

import (
	"github.com/quorate/quorate/internal/consensus/rules"
	"testing"
)

func logOf(entries ...entry) (l journal) {
	for _, e := range entries {
		l.add(e)
	}
	return l
}

func exact(proposal, revision int8) entry {
	e := plainEntry(exactEntry, proposal, 1)
	e.Revision = revision
	return e
}

// Ensure that an exact entry whose revision has passed is skipped, that an abort decides, and that a proposal is applied once.
func TestMachine_StoreAt(t *testing.T) {
	footprint := [MaxProposals]uint8{1, 2, 1}
	l := logOf(plainEntry(noopEntry, 0, 1), plainEntry(slowEntry, 0, 1), exact(1, 2), exact(1, 5),
		plainEntry(abortEntry, 2, 1), plainEntry(slowEntry, 2, 1), plainEntry(slowEntry, 0, 1))
	st := machine{footprint: &footprint}.StoreAt(&l, l.N)
	if st.Bad != "" || st.Revision != 5 || st.Changed != (result{2, 5}) || st.Skipped[1] != [2]uint32{1 << 2} {
		t.Errorf("got %+v", st)
	}
	if !st.Rows[0].Done || st.Rows[0].Revision != 2 || !st.Rows[1].Done || st.Rows[2].Done || !st.Rows[2].Aborted {
		t.Errorf("got rows %+v", st.Rows)
	}
	if st = (machine{rules: rules.Without(rules.SkipApplies), footprint: &footprint}).StoreAt(&l, l.N); st.Bad == "" {
		t.Error("without the rule that skips, L2 holds all the same")
	}
}

// Ensure that a joint configuration needs a majority of both sets, and is in force from its entry on.
func TestElectorate_Quorum(t *testing.T) {
	m := electorate{configs: []Config{{Old: 0b00111}, {Old: 0b00111, New: 0b11001}}}
	for _, row := range []struct {
		at   int8
		in   uint8
		want bool
	}{{0, 0b00011, true}, {0, 0b00001, false}, {0, 0b11001, false}, {1, 0b00011, false}, {1, 0b01011, true}, {1, 0b11001, false}} {
		if got := m.Quorum(row.at, row.in); got != row.want {
			t.Errorf("configuration %d, members %b: got %v, want %v", row.at, row.in, got, row.want)
		}
	}
	l := logOf(plainEntry(noopEntry, 0, 1), plainEntry(ConfigEntry, 1, 3))
	if at, id := m.Config(&l); at != 1 || id != (configID{2, 3}) {
		t.Errorf("got configuration %d, id %v", at, id)
	}
}

// Ensure that a lease lasts as long as the shortest promise of a majority, counted from the begin of the round.
func TestLeases_promise(t *testing.T) {
	l := leases{electorate{configs: []Config{{Old: 0b111}}}, &[MaxMembers]int8{5, 3, 4}, 3}
	var s State
	s.M[0].Role = Leader
	s.Now = 10
	l.round(&s, Action{})
	s.Now = 12
	if l.promise(&s, 1, 0); s.M[0].LeaseUntil != 13 || s.M[1].PatientUntil != 15 {
		t.Errorf("got a lease until %d, patience until %d; want 13, 15", s.M[0].LeaseUntil, s.M[1].PatientUntil)
	}
	if !l.promised(&s, &s.M[1]) || l.promised(&s, &s.M[2]) {
		t.Error("who answered, and nobody else, has promised")
	}
}
