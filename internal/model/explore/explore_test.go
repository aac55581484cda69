package explore

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/model"
)

// Ensure that the full rules keep every law in walks over every cluster, and that the walks reach the events that they aim at.
func TestWalk_fullRules(t *testing.T) {
	f, st, err := Walk(WalkOptions{Seed: 1, Walks: 40_000})
	if err != nil {
		t.Fatal(err)
	}
	if f != nil {
		var b strings.Builder
		f.Print(&b)
		t.Fatalf("%s\n%s", f.Broken, &b)
	}
	v := reflect.ValueOf(st)
	for i := range v.NumField() {
		if v.Field(i).Int() == 0 {
			t.Errorf("no walk met %s", v.Type().Field(i).Name)
		}
	}
}

// Ensure that a walk is a function of its seed and number.
func TestWalk_sameTwice(t *testing.T) {
	run := func() Stats {
		_, st, err := Walk(WalkOptions{Seed: 7, Walks: 500})
		if err != nil {
			t.Fatal(err)
		}
		st.Elapsed = 0
		return st
	}
	if a, b := run(), run(); a != b {
		t.Errorf("got %+v, then %+v", a, b)
	}
}

// Ensure that rules whose absence shows soon are found, by the seed and walk of the table in docs/simulation.md.
func TestMutations_found(t *testing.T) {
	for _, want := range []struct{ name, law string }{
		{"superquorum-less", "L1"},
		{"proposer-any-payload", "L1"},
		{"recover-any-payload", "L1"},
		{"witness-no-log-id", "L1"},
		{"vote-without", "L1"},
		{"recover-more", "L1"},
		{"recover-descending", "L1"},
		{"witness-volatile", "L1"},
		{"skip-applies", "L2"},
		{"abort-no-row", "L7"},
		{"infer-leader-tail", "log matching"},
		{"hint-unchecked", "log matching"},
		{"snapshot-no-table", "L6"},
		{"read-commit-index", "L6"},
		{"read-past-pool", "L6"},
		{"read-leader-index", "L6"}, // the stale read of November 2026
		{"own-lease-ticks", "L6"},
		{"recovery-drops", "L1"},
		{"recovery-same-epoch", "leader completeness"},
		{"read-forgets-answers", "L6"},
		{"read-below-noop", "L6"},
		{"read-old-ends", "L6"},
		{"read-while-changing", "L6"},
		{"recover-after-noop", "L6"},
		{"leader-no-pool-keys", "L1"},
		{"leader-no-pool-order", "L1"},
	} {
		mu := named(t, want.name)
		f := first(t, mu, 60_000)
		switch {
		case f == nil:
			t.Errorf("%s: no law broken", want.name)
		case f.Law() != want.law:
			t.Errorf("%s: broke %q, want %s", want.name, f.Broken, want.law)
		case replayUnder(f, rules.Set{}) != "":
			t.Errorf("%s: the trace breaks the full rules, too: %s", want.name, replayUnder(f, rules.Set{}))
		}
	}
}

// replayUnder runs the trace of a finding under other rules, and returns the law that breaks.
func replayUnder(f *Finding, r rules.Set) string {
	_, broken := replay(model.New(f.model.Scenario, r), f.trace)
	return broken
}

// first returns the finding of the first so many walks, or of the fixed trace.
func first(t *testing.T, mu *Mutation, walks uint64) *Finding {
	t.Helper()
	if scripts[mu.Dropped()] != nil {
		f, _, err := mu.Try(1, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	o := mu.Options(1)
	o.Walks = walks
	f, _, err := Walk(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func named(t *testing.T, name string) *Mutation {
	t.Helper()
	for _, mu := range Mutations() {
		if mu.Dropped() == name {
			return &mu
		}
	}
	t.Fatalf("there is no mutation %q", name)
	return nil
}

// Ensure that every rule of the model has a row in the table, and that each row states the expected result, here and in the
// document.
func TestMutations_complete(t *testing.T) {
	document, err := os.ReadFile("../../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	var used rules.Set
	seen := map[string]bool{}
	for _, mu := range Mutations() {
		for _, rule := range mu.Drops {
			used[rule] = true
			if rule.Text().In&rules.Model == 0 {
				t.Errorf("%v is no rule of the model", rule)
			}
		}
		if row := "\n| `" + strings.ReplaceAll(mu.Dropped(), ", ", "`, `") + "` | "; !strings.Contains(string(document), row) {
			t.Errorf("docs/simulation.md has no row that begins with %s", row)
		}
		if mu.Breaks == (mu.Why != "") {
			t.Errorf("%s: either it breaks a law, or the table says why not", mu.Dropped())
		}
		if seen[mu.Dropped()] {
			t.Errorf("%s is there twice", mu.Dropped())
		}
		seen[mu.Dropped()] = true
	}
	for rule := range rules.All(rules.Model) {
		if !used[rule] {
			t.Errorf("no mutation drops %v", rule)
		}
	}
}

// Ensure that a small bound is searched to its end, and that a search finds the law that a dropped rule breaks.
func TestSearch_least(t *testing.T) {
	f, res, err := Search("least", rules.Set{}, 1_000_000, 0)
	if err != nil || f != nil || !res.Complete {
		t.Fatalf("got %+v, %+v, %v", f, res, err)
	}
	if res.States < 1000 {
		t.Errorf("only %d states: the bound is empty", res.States)
	}
	f, _, err = Search("read2", rules.Without(rules.ReadCommitIndex), 1_000_000, 0)
	if err != nil || f == nil || f.Law() != "L6" {
		t.Fatalf("reads of the commit index: got %+v, %v", f, err)
	}
	if replayUnder(f, rules.Without(rules.ReadCommitIndex)) == "" {
		t.Errorf("the trace does not replay")
	}
}

// Ensure that an unknown name is refused with the list of known names.
func TestWalk_unknown(t *testing.T) {
	for _, o := range []WalkOptions{{}, {Walks: 1, Profile: "x"}, {Walks: 1, Clusters: []string{"n9"}}} {
		if _, _, err := Walk(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	if _, _, err := Search("x", rules.Set{}, 1, 0); err == nil {
		t.Error("search of an unknown bound: no error")
	}
}
