package breaks_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/sim/breaks"
)

var rewrite = flag.Bool("rewrite", false, "write the table of docs/simulation.md instead of comparing with it")

// Ensure that every negative control breaks something, and that a control with the name of a rule drops that rule alone.
func TestNamed(t *testing.T) {
	core := 0
	for _, b := range breaks.All() {
		set, err := breaks.Named(b.Name)
		if err != nil || set == (breaks.Set{}) || b.Law == "" || b.About == "" {
			t.Errorf("%s breaks nothing, or says nothing (%v): %+v", b.Name, err, b)
		}
		rule, known := rules.Named(b.Name)
		if !known || rule.Text().In&rules.Identity != 0 {
			continue
		}
		core++
		if set.Raft != rules.Without(rule) {
			t.Errorf("%s drops %v", b.Name, set.Raft)
		}
	}
	if core < 20 {
		t.Errorf("%d rules of the core are dropped", core)
	}
	if set, err := breaks.Named("no-log-keys"); err != nil || set.Raft != rules.Without(rules.WitnessNoLogKeys, rules.LeaderNoLogKeys) {
		t.Errorf("no-log-keys drops %v (%v)", set.Raft, err)
	}
	if set, err := breaks.Named("ignore-binding"); err != nil || !set.Rules.IgnoreBinding || set.Raft != (rules.Set{}) {
		t.Errorf("ignore-binding drops %+v (%v)", set, err)
	}
}

// Ensure that no two controls have one name.
func TestAll_names(t *testing.T) {
	var names []string
	for _, b := range breaks.All() {
		if slices.Contains(names, b.Name) {
			t.Errorf("two controls are called %s", b.Name)
		}
		names = append(names, b.Name)
	}
}

const (
	documentFile = "../../../docs/simulation.md"
	heading      = "| switch | what is broken | the simulator reports |\n|---|---|---|\n"
)

// Ensure that the table of controls in docs/simulation.md is made from the controls here. Rules of the protocol are in
// docs/rules.md.
func TestAll_documented(t *testing.T) {
	text, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), heading)
	_, after, _ := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatalf("%s has no table that begins with %s", documentFile, heading)
	}
	var table strings.Builder
	for _, b := range breaks.All() {
		if _, rule := rules.Named(b.Name); rule {
			continue
		}
		about := b.About
		if b.With != "" {
			about += fmt.Sprintf(" (`%s`)", b.With)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", b.Name, about, b.Law)
	}
	want := before + heading + table.String() + "\n" + after
	switch {
	case string(text) == want:
	case *rewrite:
		if err := os.WriteFile(documentFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from the controls: run this test with -rewrite", documentFile)
	}
}
