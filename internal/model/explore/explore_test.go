package explore

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/model"
)

// Ensure that the full rules keep every law in walks over every cluster, and that the walks meet what they are for.
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
		{"superquorum one lower", "L1"},
		{"proposer: any payload", "L1"},
		{"holders counted whatever their payload", "L1"},
		{"witness: does not look for the proposal in its log", "L1"},
		{"vote carries nothing", "L1"},
		{"recovery quorum one higher", "L1"},
		{"recovered in descending order", "L1"},
		{"witness: record not durable", "L1"},
		{"too late: applied all the same", "L2"},
		{"abort leaves no row", "L7"},
		{"inferred commit counts a leader's unwritten tail", "log matching"},
		{"commit hint without comparing the term", "log matching"},
		{"snapshot without the table of results", "L6"},
		{"read: commit index", "L6"},
		{"read: past a pool", "L6"},
		{"read: the reader confirms the leader's index, log not compared", "L6"}, // the stale read of November 2026
		{"lease: own patience taken for all", "L6"},
		{"recovery from loss adopts no records", "L1"},
		{"recovery without a new epoch", "leader completeness"},
		{"read: index without what the leader answered", "L6"},
		{"read: index below the no-op", "L6"},
		{"read: index of disks before the read", "L6"},
		{"read: index of disks during a change", "L6"},
		{"recovered after the no-op", "L6"},
		{"leader: no keys against the pool", "L1"},
		{"leader: no order against the pool", "L1"},
	} {
		mu := named(t, want.name)
		f := first(t, mu, 60_000)
		switch {
		case f == nil:
			t.Errorf("%s: no law broken", want.name)
		case f.Law() != want.law:
			t.Errorf("%s: broke %q, want %s", want.name, f.Broken, want.law)
		case replayUnder(f, model.Rules{}) != "":
			t.Errorf("%s: the trace breaks the full rules, too: %s", want.name, replayUnder(f, model.Rules{}))
		}
	}
}

// replayUnder runs the trace of a finding under other rules, and returns what breaks.
func replayUnder(f *Finding, r model.Rules) string {
	_, broken := replay(model.New(f.model.Scenario, r), f.trace)
	return broken
}

// first is what the first so many walks find, or the fixed trace.
func first(t *testing.T, mu *Mutation, walks uint64) *Finding {
	t.Helper()
	if scripts[mu.Name] != nil {
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
		if mu.Name == name {
			return &mu
		}
	}
	t.Fatalf("there is no mutation %q", name)
	return nil
}

// ruleNames are the names of the rules, in their order.
func ruleNames(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../rules.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.CONST {
			for _, spec := range group.Specs {
				names = append(names, spec.(*ast.ValueSpec).Names[0].Name)
			}
		}
	}
	if len(names) != int(model.RuleCount)+1 {
		t.Fatalf("got %d names of %d rules", len(names)-1, model.RuleCount)
	}
	return names[:model.RuleCount]
}

// Ensure that every rule has a row in the table, and that each row says what is expected, here and in the document.
func TestMutations_complete(t *testing.T) {
	document, err := os.ReadFile("../../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	used, names := model.Rules{model.UncheckedL5: true}, ruleNames(t) // UncheckedL5 drops a law, not a rule
	seen := map[string]bool{}
	for _, mu := range Mutations() {
		var dropped []string
		for _, rule := range mu.Drops {
			used[rule] = true
			dropped = append(dropped, "`"+names[rule]+"`")
		}
		if row := "| " + mu.Name + " | " + strings.Join(dropped, ", ") + " |"; !strings.Contains(string(document), row) {
			t.Errorf("docs/simulation.md has no row that begins with %s", row)
		}
		if mu.Breaks == (mu.Why != "") {
			t.Errorf("%s: either it breaks a law, or the table says why not", mu.Name)
		}
		if seen[mu.Name] {
			t.Errorf("%s is there twice", mu.Name)
		}
		seen[mu.Name] = true
	}
	for rule, dropped := range used {
		if !dropped {
			t.Errorf("no mutation drops %s", names[rule])
		}
	}
}

// Ensure that a small bound is searched to its end, and that a search finds what a dropped rule breaks.
func TestSearch_least(t *testing.T) {
	f, res, err := Search("least", model.Rules{}, 1_000_000, 0)
	if err != nil || f != nil || !res.Complete {
		t.Fatalf("got %+v, %+v, %v", f, res, err)
	}
	if res.States < 1000 {
		t.Errorf("only %d states: the bound is empty", res.States)
	}
	f, _, err = Search("read2", model.Without(model.ReadCommitIndex), 1_000_000, 0)
	if err != nil || f == nil || f.Law() != "L6" {
		t.Fatalf("reads of the commit index: got %+v, %v", f, err)
	}
	if replayUnder(f, model.Without(model.ReadCommitIndex)) == "" {
		t.Errorf("the trace does not replay")
	}
}

// Ensure that what makes no sense is refused with the names that do.
func TestWalk_unknown(t *testing.T) {
	for _, o := range []WalkOptions{{}, {Walks: 1, Profile: "x"}, {Walks: 1, Clusters: []string{"n9"}}} {
		if _, _, err := Walk(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	if _, _, err := Search("x", model.Rules{}, 1, 0); err == nil {
		t.Error("search of an unknown bound: no error")
	}
}
