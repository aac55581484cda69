package sim

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/sim/changes"
	"github.com/quorate/quorate/internal/sim/places"
	"github.com/quorate/quorate/internal/sim/plan"
)

// Ensure that machines that are gone, and impostors of members, do not count as members of a cluster; and that a host that lost
// its disk and has no successor is found.
func TestCluster_present(t *testing.T) {
	w, err := newWorld(Options{Seed: 1, Members: 4, Nemesis: "none"})
	if err != nil {
		t.Fatal(err)
	}
	c := w.cluster
	if n := len(c.up()); n != 0 {
		t.Fatalf("%d members run before the beginning", n)
	}
	w.runUntil(5*time.Second, nil)
	if len(c.up()) != 4 || len(c.present()) != 4 || c.leader() == nil || c.lost() != nil {
		t.Fatalf("%d run, %d are present, %v leads, %v is lost", len(c.up()), len(c.present()), c.leader(), c.lost())
	}
	c.list[0].retire()
	wiped := c.list[1]
	wiped.crash()
	wiped.empty()
	if up, present := len(c.up()), len(c.present()); up != 2 || present != 2 {
		t.Errorf("%d run, %d are present, want 2", up, present)
	}
	if c.lost() != wiped {
		t.Errorf("%v is lost, want %v", c.lost(), wiped)
	}
}

// Ensure that a directory that was made anew by hand has the same first configuration as the others, also after a second
// founding.
func TestHost_remake_bindings(t *testing.T) {
	w, err := newWorld(Options{Seed: 1, Members: 3, Nemesis: "found"})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range w.cluster.list { // as the operator of a broken founding does
		h.empty()
		h.impostor, h.suite = "", w.run.suite
	}
	w.runUntil(20*time.Second, func() bool { return len(w.cluster.up()) == 3 })
	h, other := w.cluster.list[0], w.cluster.list[1]
	h.crash()
	h.empty()
	h.remake()
	data, err := datadir.Open(h.options())
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	config := data.Machine.SnapshotMeta().Config
	m, ok := config.Member(other.id)
	if !ok || m.Storage != other.storageID() || m.Storage == storageOf(other.id, 0) {
		t.Errorf("member %v is bound to %v, want %v", other.id, m.Storage, other.storageID())
	}
}

// Ensure that only a minority may lose their disks.
func TestDiskFaults_mayLose(t *testing.T) {
	w, err := newWorld(Options{Seed: 1, Members: 5, Nemesis: "none"})
	if err != nil {
		t.Fatal(err)
	}
	w.runUntil(5*time.Second, nil)
	for i, h := range w.cluster.list {
		if may := w.disks.mayLose(h); may != (i < 2) {
			t.Errorf("after %d losses another one is allowed: %t", i, may)
		}
		h.impostor = wiped
	}
}

// Ensure that every strike belongs to a fault that a plan can draw.
func TestStrikes(t *testing.T) {
	known := map[string]bool{}
	for _, n := range Nemeses() {
		known[n.Name] = true
	}
	for name := range strikes {
		if !known[name] {
			t.Errorf("%s strikes, and is drawn by no plan", name)
		}
	}
}

// Ensure that members have the builds of their plan, that the level that all of them know becomes active and no other, and that
// the logs of all members are packed.
func TestHost_builds(t *testing.T) {
	kinds, rises := map[plan.Levels]bool{}, map[bool]bool{}
	check := func(seed uint64, nemesis string, after time.Duration) {
		w, err := newWorld(Options{Seed: seed, Members: 3, Nemesis: nemesis})
		if err != nil {
			t.Fatal(err)
		}
		levels, want, older := w.run.plan.Levels, level.Own, 0
		for _, h := range w.cluster.list {
			if h.older {
				older++
			}
		}
		if older > 0 != levels.Older {
			t.Errorf("%s, %+v: %d members begin with an earlier build", nemesis, levels, older)
		}
		switch {
		case levels.Older && !levels.Upgrades:
			want = levels.Former
		case levels.Rises:
			want = nextlevel.Level
		}
		w.runUntil(after, nil)
		kinds[levels], rises[levels.Rises] = true, true
		for _, h := range w.cluster.list {
			if got := h.proc.Data.Machine.ActiveLevel(); got != want {
				t.Errorf("%s, %+v: level %d is active at member %d, want %d", nemesis, levels, got, h.slot, want)
			}
			if log := h.proc.Data.WAL.Stats(); log.Packed == 0 && log.Appends > 20 { // seed 1 hardly writes
				t.Errorf("%s, %+v: none of %d records of member %d is packed", nemesis, levels, log.Appends, h.slot)
			}
		}
	}
	check(1, "upgrade", 80*time.Second)
	for seed := range uint64(8) {
		check(seed, "none", 10*time.Second)
	}
	check(1, "auth", 20*time.Second)
	if len(kinds) < 4 || len(rises) < 2 {
		t.Errorf("only %v were seen", kinds)
	}
}

// Ensure that the second address of a machine stays its own when another machine gets its first one, and leads where the first
// one leads while that is diverted.
func TestCluster_at_elsewhere(t *testing.T) {
	w, err := newWorld(Options{Seed: 1, Members: 3, Nemesis: "none"})
	if err != nil {
		t.Fatal(err)
	}
	c := w.cluster
	h, other := c.list[0], c.list[1]
	second := changes.Elsewhere(7, h.id)
	leads := func(want *host) {
		t.Helper()
		if p := c.at(second); p != (places.Place{Kind: places.PeerPort, Machine: want.slot}) {
			t.Errorf("%s leads to %+v, want machine %d", second, p, want.slot)
		}
	}
	leads(h)
	c.divert(h, other)
	leads(other)
	c.places.Restore(h.url)
	leads(h)
	c.places.Settle(h.url, places.Place{Kind: places.PeerPort, Machine: other.slot})
	leads(h)
}

// Ensure that a machine with a wrong date waits until its own clock shows a time.
func TestHost_until_date(t *testing.T) {
	w, err := newWorld(Options{Seed: 1, Members: 1, Nemesis: "dates"})
	if err != nil {
		t.Fatal(err)
	}
	h := w.cluster.list[0]
	for _, date := range []time.Duration{-time.Hour, 0, time.Hour} {
		h.date = date
		if wait := h.until(h.clock().Add(time.Second)); (wait - time.Second).Abs() > 100*time.Millisecond {
			t.Errorf("a date wrong by %v: waits for %v, want a second", date, wait)
		}
	}
}
