package identity_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

func founder(id consensus.MemberID, s byte) *identity.Founder {
	return &identity.Founder{Own: claim(id, s, 0), Members: bound(1, 2, 3)}
}

func fresh(id consensus.MemberID, s byte) identity.Greeting { return founder(id, s).Greeting() }

func recorded(id consensus.MemberID, s byte, bindings ...byte) identity.Greeting {
	f := founder(id, s)
	f.Bindings = bindingsOf(bindings...)
	return f.Greeting()
}

func bindingsOf(storages ...byte) []identity.Bound {
	var bindings []identity.Bound
	for i, s := range storages {
		bindings = append(bindings, identity.Bound{Member: consensus.MemberID(i + 1), Storage: storage(s)})
	}
	return bindings
}

func TestFounder_Decide(t *testing.T) {
	runs := func(bound byte) identity.Greeting {
		m := consensus.Member{ID: 1}
		if bound > 0 {
			m.Storage = storage(bound)
		}
		g := fresh(3, 3)
		g.Stage, g.Bindings = identity.Founded, identity.Line(&m, storage(1))
		return g
	}
	without := runs(1)
	without.Bindings = nil
	for _, row := range []struct {
		name     string
		bindings []byte
		majority bool
		excluded bool
		met      []identity.Greeting
		want     identity.Verdict
		missing  []consensus.MemberID
	}{
		{name: "nobody is there", want: identity.Wait, missing: []consensus.MemberID{2, 3}},
		{name: "one is missing", met: []identity.Greeting{fresh(2, 2)}, want: identity.Wait, missing: []consensus.MemberID{3}},
		{name: "one is missing, and a majority may found", majority: true, met: []identity.Greeting{fresh(2, 2)},
			want: identity.Begin},
		{name: "all are there", met: []identity.Greeting{fresh(2, 2), fresh(3, 3)}, want: identity.Record},
		{name: "others have not recorded", bindings: []byte{1, 2, 3}, met: []identity.Greeting{fresh(2, 2), recorded(3, 3, 1, 2, 3)},
			want: identity.Wait, missing: []consensus.MemberID{2}},
		{name: "all have recorded", bindings: []byte{1, 2, 3},
			met: []identity.Greeting{recorded(2, 2, 1, 2, 3), recorded(3, 3, 1, 2, 3)}, want: identity.Begin},
		{name: "one lost its disk after this one recorded", bindings: []byte{1, 2, 3},
			met: []identity.Greeting{fresh(2, 9), recorded(3, 3, 1, 2, 3)}, want: identity.Broken},
		{name: "this one lost its disk after another recorded", met: []identity.Greeting{recorded(2, 2, 9, 2, 3)},
			want: identity.Broken},
		{name: "one runs already, and this one has recorded", bindings: []byte{1, 2, 3}, met: []identity.Greeting{runs(1)},
			want: identity.Begin},
		{name: "the cluster runs, and knew another disk", met: []identity.Greeting{fresh(2, 2), runs(8)}, want: identity.Lost},
		{name: "and a majority may found", majority: true, met: []identity.Greeting{fresh(2, 2), runs(8)}, want: identity.Lost},
		{name: "the cluster runs without this one", met: []identity.Greeting{without}, want: identity.Retired},
		{name: "a cluster of a majority has not met this one", majority: true, met: []identity.Greeting{runs(0)},
			want: identity.Begin},
		{name: "it was told that the cluster runs, and nobody is there", excluded: true, want: identity.Lost},
		{name: "and all are there, without data", excluded: true, bindings: []byte{1, 2, 3},
			met: []identity.Greeting{recorded(2, 2, 1, 2, 3), recorded(3, 3, 1, 2, 3)}, want: identity.Lost},
		{name: "and a majority may found", excluded: true, majority: true, met: []identity.Greeting{fresh(2, 2)},
			want: identity.Lost},
		{name: "and one who runs knows this disk", excluded: true, bindings: []byte{1, 2, 3},
			met: []identity.Greeting{fresh(2, 2), runs(1)}, want: identity.Begin},
	} {
		f := founder(1, 1)
		f.Majority, f.Excluded = row.majority, row.excluded
		if row.bindings != nil {
			f.Bindings = bindingsOf(row.bindings...)
		}
		got := f.Decide(row.met)
		if got.Verdict != row.want || !slices.Equal(got.Missing, row.missing) {
			t.Errorf("%s: got %d, missing %v; want %d, missing %v", row.name, got.Verdict, got.Missing, row.want, row.missing)
		}
	}
}

// Ensure that processes whose members were replaced, one after the other, never found the cluster again among themselves.
func TestFounder_Decide_excluded(t *testing.T) {
	running := identity.Greeting{Claim: claim(3, 33, 0), Stage: identity.Founded,
		Bindings: identity.Line(&consensus.Member{ID: 1, Storage: storage(9)}, storage(1))}
	waiting := []*identity.Founder{founder(1, 1), founder(2, 2), founder(3, 3)}
	for _, f := range waiting {
		if d := f.Decide([]identity.Greeting{running}); d.Verdict != identity.Lost && d.Verdict != identity.Retired {
			t.Fatalf("%v decides %d while the cluster runs", f.Own.Member, d.Verdict)
		}
		f.Excluded = true
	}
	for range 3 {
		for _, f := range waiting {
			var met []identity.Greeting
			for _, other := range waiting {
				if other != f {
					met = append(met, other.Greeting())
				}
			}
			d := f.Decide(met)
			if d.Verdict == identity.Record {
				f.Bindings = d.Bindings
			}
			if d.Verdict != identity.Lost || !strings.Contains(d.Text, "founds nothing") {
				t.Errorf("%v decides %d (%s) with all others, none of whom has data", f.Own.Member, d.Verdict, d.Text)
			}
		}
	}
}

// Ensure, whichever member asks which, crashes, or loses its disk, that no two members begin with different lists of bindings
// unless all that the first one named are gone; and that members which keep their disks begin in the end.
func TestFounder_walk(t *testing.T) {
	begun, broken := 0, 0
	for seed := range uint64(3000) {
		w := foundingWalk{rng: rand.New(rand.NewPCG(seed, 3)), next: 10}
		losses := int(seed % 3)
		for id := consensus.MemberID(1); id <= 3; id++ {
			w.wipe(id)
		}
		for range 200 {
			id := consensus.MemberID(1 + w.rng.IntN(3))
			if losses > 0 && w.rng.IntN(20) == 0 {
				losses--
				w.wipe(id)
				continue
			}
			w.turn(id)
		}
		if err := w.check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		n := 0
		for id := range w.data {
			if w.data[id].begun != nil {
				n++
			}
		}
		switch {
		case n == 3:
			begun++
		case seed%3 == 0:
			t.Fatalf("seed %d: %d of 3 began although no disk was lost", seed, n)
		default:
			broken++
		}
	}
	t.Logf("%d began, %d did not", begun, broken)
	if begun < 1000 || broken == 0 {
		t.Errorf("%d began and %d did not: the walk does not reach both", begun, broken)
	}
}

type foundingDisk struct {
	storage  byte
	bindings []identity.Bound
	begun    []identity.Bound
}

type foundingWalk struct {
	rng  *rand.Rand
	next byte
	data [4]foundingDisk
	past [][]identity.Bound // lists of bindings that a member began with
}

func (w *foundingWalk) wipe(id consensus.MemberID) {
	w.data[id] = foundingDisk{storage: w.next}
	w.next++
}

// turn lets one member ask those who can be reached now.
func (w *foundingWalk) turn(id consensus.MemberID) {
	own := &w.data[id]
	if own.begun != nil {
		return
	}
	f := founder(id, own.storage)
	f.Bindings = own.bindings
	var met []identity.Greeting
	for other := consensus.MemberID(1); other <= 3; other++ {
		if other == id || w.rng.IntN(4) == 0 {
			continue
		}
		d := &w.data[other]
		of := founder(other, d.storage)
		of.Bindings = d.bindings
		g := of.Greeting()
		if d.begun != nil {
			m := consensus.Member{ID: id, Storage: d.begun[id-1].Storage}
			g.Stage, g.Bindings = identity.Founded, identity.Line(&m, storage(own.storage))
		}
		met = append(met, g)
	}
	switch decision := f.Decide(met); decision.Verdict {
	case identity.Record:
		own.bindings = decision.Bindings
	case identity.Begin:
		own.begun = decision.Bindings
		w.past = append(w.past, decision.Bindings)
	}
}

func (w *foundingWalk) check() error {
	for _, a := range w.past {
		for _, b := range w.past {
			shared := 0
			for i := range a {
				if a[i] == b[i] {
					shared++
				}
			}
			if shared != 0 && shared != len(a) {
				return fmt.Errorf("begun with %v and with %v", a, b)
			}
		}
	}
	return nil
}

// Ensure that the answer of a member that runs counts whatever its id is: a member that was reset answers at the URL of the
// unchanged flags. A founder that has heard it founds nothing any more.
func TestFounder_Hears_reset(t *testing.T) {
	f := founder(1, 1)
	for _, row := range []struct {
		name string
		at   consensus.MemberID
		g    identity.Greeting
		want bool
	}{
		{"the founder that is expected there", 2, fresh(2, 2), true},
		{"another founder", 2, fresh(3, 3), false},
		{"a member that was reset", 2, identity.Greeting{Claim: claim(77, 7, 1), Stage: identity.Founded}, true},
		{"a process of another cluster", 2, identity.Greeting{Claim: identity.Claim{Cluster: 0xc2, Member: 2},
			Stage: identity.Founded}, false},
		{"a member that joined later, at --join", consensus.NoMember, joined(0), true},
		{"a founder at --join", consensus.NoMember, fresh(2, 2), false},
		{"a process without an id at --join", consensus.NoMember, fresh(consensus.NoMember, 2), false},
		{"a member of another cluster at --join", consensus.NoMember, identity.Greeting{Claim: identity.Claim{Cluster: 0xc2,
			Member: 9}, Stage: identity.Founded}, false},
	} {
		if got := f.Hears(row.at, &row.g); got != row.want {
			t.Errorf("%s: heard %v, want %v", row.name, got, row.want)
		}
	}
	reset := identity.Greeting{Claim: claim(77, 7, 1), Stage: identity.Founded,
		Bindings: identity.Line(&consensus.Member{ID: 1, Storage: storage(9)}, storage(1))}
	if d := f.Decide([]identity.Greeting{reset, fresh(3, 3)}); d.Verdict != identity.Lost {
		t.Errorf("it decides %d (%s) while members that were reset run", d.Verdict, d.Text)
	}
	f.Excluded = true
	if d := f.Decide([]identity.Greeting{fresh(2, 2), fresh(3, 3)}); d.Verdict != identity.Lost {
		t.Errorf("it decides %d (%s) after it has heard of them", d.Verdict, d.Text)
	}
}

// joined is what a member says that joined after the founding; bound is the storage of member 1 that it knows, 0: it knows no
// member 1.
func joined(bound byte) identity.Greeting {
	g := identity.Greeting{Claim: claim(9, 99, 1), Stage: identity.Founded}
	if bound > 0 {
		g.Bindings = identity.Line(&consensus.Member{ID: 1, Storage: storage(bound)}, storage(1))
	}
	return g
}

// Ensure that founders which have all lost their disks found nothing, if one member answers that joined the cluster later.
func TestFounder_Decide_foundersLost(t *testing.T) {
	for _, row := range []struct {
		name     string
		bindings []byte
		majority bool
		met      []identity.Greeting
		want     identity.Verdict
	}{
		{name: "all are fresh", met: []identity.Greeting{fresh(2, 2), fresh(3, 3), joined(8)}, want: identity.Lost},
		{name: "all have recorded", bindings: []byte{1, 2, 3}, met: []identity.Greeting{recorded(2, 2, 1, 2, 3),
			recorded(3, 3, 1, 2, 3), joined(8)}, want: identity.Lost},
		{name: "a majority may found", majority: true, met: []identity.Greeting{fresh(2, 2), joined(8)}, want: identity.Lost},
		{name: "no other founder is there", met: []identity.Greeting{joined(8)}, want: identity.Lost},
		{name: "this one was removed", met: []identity.Greeting{fresh(2, 2), fresh(3, 3), joined(0)}, want: identity.Retired},
		{name: "it knows this disk, and this one has recorded", bindings: []byte{1, 2, 3},
			met: []identity.Greeting{recorded(2, 2, 1, 2, 3), joined(1)}, want: identity.Begin},
	} {
		f := founder(1, 1)
		f.Majority = row.majority
		if row.bindings != nil {
			f.Bindings = bindingsOf(row.bindings...)
		}
		if got := f.Decide(row.met); got.Verdict != row.want {
			t.Errorf("%s: got %d (%s), want %d", row.name, got.Verdict, got.Text, row.want)
		}
	}
}

// Ensure that no operator is told to empty a directory while a member that may have begun has not been asked, nor that nothing
// was written: those who began may have come back without their disks.
func TestFounder_Decide_brokenAdvice(t *testing.T) {
	f := founder(1, 1)
	f.Bindings = bindingsOf(1, 2, 3)
	all := f.Decide([]identity.Greeting{fresh(2, 9), recorded(3, 3, 1, 2, 3)})
	if all.Verdict != identity.Broken || strings.Contains(all.Text, "nobody has written") ||
		!strings.Contains(all.Text, "not mounted") || !strings.Contains(all.Text, "m2") && !strings.Contains(all.Text, "2 at") {
		t.Errorf("all answer: %+v", all)
	}
	if look, move := strings.Index(all.Text, "not mounted"), strings.Index(all.Text, "aside"); look < 0 || move < look ||
		strings.Contains(all.Text, "empty their data directories") {
		t.Errorf("what is lost for ever comes first: %s", all.Text)
	}
	began := founder(3, 3) // the others began, wrote, and came back without their disks
	began.Bindings = bindingsOf(1, 2, 3)
	if d := began.Decide([]identity.Greeting{fresh(1, 8), fresh(2, 9)}); d.Verdict != identity.Broken ||
		strings.Contains(d.Text, "nobody has written") {
		t.Errorf("two of three came back empty: %+v", d)
	}
	some := f.Decide([]identity.Greeting{fresh(2, 9)})
	if some.Verdict != identity.Broken || strings.Contains(some.Text, "nobody has written") ||
		!strings.Contains(some.Text, "Start 3 at") && !strings.Contains(some.Text, "Start m3") {
		t.Errorf("one does not answer: %+v", some)
	}
}

// Ensure that a process without data is not told to reset its member while that member is known to run elsewhere, whichever
// process says so.
func TestFounder_Decide_runsElsewhere(t *testing.T) {
	f := identity.Founder{
		Own: claim(1, 1, 0), Members: []consensus.Member{{ID: 1, Name: "m1"}, {ID: 2, Name: "m2"}, {ID: 3, Name: "m3"}},
	}
	met := []identity.Greeting{
		{Claim: claim(2, 2, 1), Stage: identity.Founded, Bindings: []identity.Bound{{Member: 1, Storage: storage(8)}}},
		{Claim: claim(3, 3, 1), Stage: identity.Founded, Bindings: []identity.Bound{{Member: 1, Storage: storage(8)}}},
	}
	if d := f.Decide(met); d.Verdict != identity.Lost || !strings.Contains(d.Text, "`quorate member reset m1`") ||
		strings.Index(d.Text, "was moved") > strings.Index(d.Text, "reset") {
		t.Errorf("verdict %d: %s", d.Verdict, d.Text)
	}
	met[1].Elsewhere = "http://new1:2380"
	if d := f.Decide(met); d.Verdict != identity.Lost || strings.Contains(d.Text, "reset") ||
		!strings.Contains(d.Text, "m1 runs with its data at http://new1:2380, says m3") {
		t.Errorf("verdict %d: %s", d.Verdict, d.Text)
	}
}
