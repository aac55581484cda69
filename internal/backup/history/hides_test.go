package history_test

import (
	"math/rand"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/history"
	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that of two encrypted segments that are compared the one is left out that cannot be read: here it is too large for the
// memory, and others lead to the one behind it.
func TestSearch_Plan_hidesUnread(t *testing.T) {
	of := past{}.grow(rand.New(rand.NewSource(1)), 60, 0)
	p := newPlace(t)
	p.sealed()
	p.base(of, 0)
	p.logs(of, 1, 40, 5)
	large := append(past{}, of...)
	for i := 20; i < 42; i++ {
		large[i].Entry.Payload = make([]byte, 3000)
		rand.New(rand.NewSource(int64(i))).Read(large[i].Entry.Payload)
	}
	p.log(large, 21, 42) // the same entries, but for what the sums say nothing of here
	p.logs(of, 39, 60, 11)
	s := p.search(backup.Target{Index: 10})
	s.Open, s.ObjectBytes = opened, 16<<10
	plan, err := s.Plan(t.Context())
	if err != nil || plan.LineEnd().Index != 60 {
		t.Fatalf("%v", err)
	}
	for _, l := range plan.Links() {
		if l.Of != nil && l.Of.Size > s.ObjectBytes {
			t.Errorf("the plan leads on by %v", l.Of)
		}
	}
}

// Ensure that what a line is replayed behind its rivals has a bound in entries and one in bytes.
func TestPlan_Behind(t *testing.T) {
	of := past{}.grow(rand.New(rand.NewSource(1)), 60, 0)
	p := newPlace(t)
	p.base(of, 0)
	p.logs(of, 1, 60, 10)
	s := history.Search{Store: p.at, Catalog: p.catalog, Target: backup.Target{Index: 12}}
	p.catalog.Sort()
	plan, err := s.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	size := plan.Segments[0].Size + 64
	for _, row := range []struct {
		index, entries consensus.Index
		bytes          int64
		want           consensus.Index
	}{{20, 1000, 1 << 30, 60}, {20, 15, 1 << 30, 35}, {25, 1000, 1 << 30, 60}, {20, 1000, 2 * size, 40}, {20, 1000, 1, 20},
		{60, 1000, 1 << 30, 60}} {
		if got := plan.Behind(row.index, row.entries, row.bytes); got != row.want {
			t.Errorf("%d entries and %d bytes behind %d: %d, want %d", row.entries, row.bytes, row.index, got, row.want)
		}
	}
}
