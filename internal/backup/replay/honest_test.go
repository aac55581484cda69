package replay_test

import (
	"context"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// Ensure that a reader who knows nothing but the place gets a revision behind which whole segments write no key.
func TestRun_noWrites(t *testing.T) {
	m := newMember(t, 4, openMem)
	m.write(10)
	m.settle()
	m.apply(kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("v")}})
	m.settle()
	at := m.index
	for range 3 {
		m.apply(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: kv.LeaseID(m.index), TTLSeconds: 60}})
		m.settle()
	}
	m.apply(kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("w")}})
	m.settle()
	for _, b := range m.catalog().Bases[1:] { // one of them would be behind the leases
		m.place.Remove(b.String())
	}
	m.honest("leases", backup.Target{Revision: m.at[at].Revision}, at)
	m.honest("leases", backup.Target{Revision: m.at[at].Revision - 1}, at-1)
}

// Ensure that the time of a base whose files took minutes to sum is that of its entry: a time within these names its state.
func TestRun_slowSums(t *testing.T) {
	m := newMember(t, 4, openMem)
	m.write(10)
	m.settle()
	before := len(m.catalog().Bases)
	taken, slow := m.performs.Checkpoint, true
	m.performs.Checkpoint = func(ctx context.Context, dir string, f func(*apply.Machine) error) error {
		err := taken(ctx, dir, f)
		for i := 0; slow && i < 10; i++ { // the sums take that long
			m.now += minute
			slow = i < 9
			m.apply(m.command())
		}
		return err
	}
	m.now += 2 * minute
	m.apply(m.command())
	m.settle()
	bases := m.catalog().Bases
	if len(bases) < before+1 {
		t.Fatalf("%d bases, and %d before", len(bases), before)
	}
	base := bases[before]
	if exact := m.at[base.Index].Time; base.Time < exact || base.Time > exact+1000 {
		t.Errorf("the base of entry %d says %d ms later", base.Index, base.Time-exact)
	}
	for i := base.Index - 2; i <= m.index; i++ {
		target := backup.Target{Time: m.at[i].Time}
		m.honest("slow sums", target, m.last(target))
	}
}

// Ensure that a time behind a gap is not refused for the clock of the member that shipped before it, which was ahead by half an
// hour, and that it is where a clock was ahead by more than an hour.
func TestRun_gapAndClockAhead(t *testing.T) {
	for _, row := range []struct {
		ahead   int64
		refused bool
	}{{30 * minute, false}, {120 * minute, true}} {
		m := newMember(t, 4, openMem)
		m.write(20)
		m.settle()
		for _, s := range m.catalog().Segments {
			if s.End.Index == m.index { // as if it was never put
				m.place.Remove(s.String())
			}
		}
		for _, b := range m.catalog().Bases[1:] {
			m.place.Remove(b.String())
		}
		segments := m.catalog().Segments
		m.now -= row.ahead
		m.shipper = ship.New(ship.Config{Cluster: cluster, Member: 4, SealBytes: 4000, BaseEvery: 60_000}, ship.Start{Applied: m.index,
			Lost: segments[len(segments)-1].End.Index}, m.now)
		m.write(20)
		m.settle()
		if gaps := m.catalog().Gaps; len(gaps) != 1 {
			t.Fatalf("%d gaps", len(gaps))
		}
		want := m.index - 5
		for m.at[want+1].Time == m.at[want].Time {
			want++
		}
		target := backup.Target{Time: m.at[want].Time}
		if !row.refused {
			m.honest("a gap", target, want)
		} else if _, err := m.sole(target, true); err == nil {
			t.Errorf("ahead by %d ms: it was not refused", row.ahead)
		}
	}
}
