package memory_test

import (
	"reflect"
	"testing"

	"github.com/quorate/quorate/internal/limits/memory"
)

const mib = 1 << 20

// Ensure that each part gets what the table of docs/limits.md says.
func TestDivide(t *testing.T) {
	const unit = mib / 64 // of each MiB beside the program's 36
	for _, tc := range []struct {
		limit                                                int64
		memTable, blocks, versions, held, answers, proposals int64
	}{
		{0, 2 * 92 * unit, 2 * 92 * unit, 6 * 92 * unit / 4, 11 * 92 * unit, 8 * 92 * unit, 2 * 92 * unit},
		{memory.MinLimit, 2 * 92 * unit, 2 * 92 * unit, 6 * 92 * unit / 4, 11 * 92 * unit, 8 * 92 * unit, 2 * 92 * unit},
		{256 * mib, 2 * 220 * unit, 2 * 220 * unit, 6 * 220 * unit / 4, 11 * 220 * unit, 8 * 220 * unit, 2 * 220 * unit},
		{512 * mib, 2 * 476 * unit, 2 * 476 * unit, 6 * 476 * unit / 4, 11 * 476 * unit, 8 * 476 * unit, 2 * 476 * unit},
		{1 << 30, 2 * 988 * unit, 32*mib - (mib*44/3 - (988*3/2*unit - 12*mib)), 6 * 988 * unit / 4, 11 * 988 * unit, 8 * 988 * unit, 2 * 988 * unit},
		{4 << 30, 32 * mib, 32 * mib, 24 * mib, 11 * 4060 * unit, 8 * 4060 * unit, 2 * 4060 * unit},
		{16 << 30, 32 * mib, 32*mib + 6<<30, 24 * mib, 1 << 30, 1 << 30, 256 * mib},
	} {
		s := memory.Divide(tc.limit)
		for _, part := range []struct {
			name      string
			got, want int64
		}{
			{"memtable", s.MemTable, tc.memTable}, {"blocks", s.Blocks, tc.blocks}, {"versions", s.Versions, tc.versions},
			{"log", s.Log.Snapshot, tc.held}, {"answers", s.Answers, tc.answers}, {"proposals", s.Proposals, tc.proposals},
		} {
			if part.got != part.want {
				t.Errorf("of %d MiB: %s has %d, want %d", tc.limit/mib, part.name, part.got, part.want)
			}
		}
	}
}

// Ensure that a continuous backup has what versions and counts leave, and of blocks where that is little, and ships before it proves.
func TestDivide_backup(t *testing.T) {
	for _, tc := range []struct{ limit, left, place, proof int64 }{
		{memory.MinLimit, 92 * mib / 64, 92 * mib / 64 / 4 * 3, 92 * mib / 64 / 4},
		{256 * mib, 220 * mib / 64, 220 * mib / 64 / 4 * 3, 220 * mib / 64 / 4},
		{512 * mib, 476 * mib / 64, 476 * mib / 64 / 4 * 3, 476 * mib / 64 / 4},
		{1 << 30, mib * 44 / 3, 6 * mib, mib*44/3 - 6*mib},
		{4 << 30, 0, 36 * mib, 96 * mib},
	} {
		s := memory.Divide(tc.limit)
		if tc.place == 0 {
			tc.place = tc.left / 4
		}
		if tc.proof == 0 {
			tc.proof = tc.left - tc.left/4
		}
		if s.Shipped.Place != tc.place || s.Proof != tc.proof {
			t.Errorf("of %d MiB: %d for the place, %d for a proof, want %d and %d of %d", tc.limit/mib, s.Shipped.Place, s.Proof,
				tc.place, tc.proof, tc.left)
		}
	}
}

// Ensure that all shares fit into their limit together, and that more memory makes none smaller.
func TestDivide_fits(t *testing.T) {
	before := memory.Divide(0)
	for limit := int64(memory.MinLimit); limit < 64<<30; limit += limit / 37 {
		s := memory.Divide(limit)
		sum := memory.MemTables*s.MemTable + s.Blocks + s.Versions + 3*s.Counts/2 + s.Log.Snapshot + s.Answers + s.Watch.Total + s.Watch.History + s.Watch.Watchers +
			2*s.Proposals + s.Backups + s.Tokens + s.Top + s.Audit + s.Console + s.Clients.Total + s.Clients.Renewals + s.Clients.Metrics + s.Packing +
			s.Peers + s.Shipped.Kept + s.Shipped.Waiting + s.Shipped.Place + s.Proof + s.Deletion + s.State.Leases + 2*s.State.Users + s.State.Sessions + s.State.Bounds
		if sum > s.Heap || s.Heap >= limit {
			t.Errorf("of %d: the parts have %d, the heap %d", limit, sum, s.Heap)
		}
		if log := s.Log.CatchUp + s.Log.Unflushed + s.Log.Unapplied + s.Log.Uncommitted + s.Log.Repeats; log > s.Log.Snapshot {
			t.Errorf("of %d: the log may have %d, its parts have %d", limit, s.Log.Snapshot, log)
		}
		if starts := s.Starts(); sum-s.State.Leases+starts > s.Heap {
			t.Errorf("of %d: the heap is %d, and a start holds leases of %d", limit, s.Heap, starts)
		}
		if admits := s.State.Admits(); admits.Least(s.State) != admits || admits.Leases < s.State.Leases/2 {
			t.Errorf("of %d: %+v of %+v are let in", limit, admits, s.State)
		}
		ascending(t, limit, reflect.ValueOf(before), reflect.ValueOf(s))
		before = s
	}
}

func ascending(t *testing.T, limit int64, before, now reflect.Value) {
	for i := range now.NumField() {
		switch a, b := before.Field(i), now.Field(i); {
		case b.Kind() == reflect.Struct:
			ascending(t, limit, a, b)
		case b.Int() < a.Int() || b.Int() <= 0:
			t.Errorf("of %d: %s has %d, of less memory it had %d", limit, now.Type().Field(i).Name, b.Int(), a.Int())
		}
	}
}

// Ensure that the shares of a proxy fit into its limit together, and that more memory makes none smaller.
func TestDivideProxy(t *testing.T) {
	before := memory.DivideProxy(0)
	for limit := int64(memory.MinLimit); limit < 64<<30; limit += limit / 37 {
		s := memory.DivideProxy(limit)
		sum := s.Clients.Total + s.Clients.Renewals + s.Clients.Metrics
		if sum >= s.Heap || s.Heap >= limit || s.Limit != limit || s.Clients.Total < (limit-36*mib)/2-mib {
			t.Errorf("of %d: %+v", limit, s)
		}
		ascending(t, limit, reflect.ValueOf(before), reflect.ValueOf(s))
		before = s
	}
}
