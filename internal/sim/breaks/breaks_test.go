package breaks_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/breaks"
)

// Ensure that every negative control of the core drops the rule that it is called after: rules have one name.
func TestNamed_core(t *testing.T) {
	core := 0
	for _, b := range breaks.All() {
		set, err := breaks.Named(b.Name)
		if err != nil || set == (breaks.Set{}) {
			t.Errorf("%s breaks nothing (%v)", b.Name, err)
		}
		for rule, dropped := range breaks.Rules(&set.Raft) {
			if *dropped {
				core++
				if !strings.HasSuffix(rule, b.Name) {
					t.Errorf("%s drops %s", b.Name, rule)
				}
			}
		}
	}
	if core < 20 {
		t.Errorf("%d rules of the core are dropped", core)
	}
}

// Ensure that a rule has a name that says its words, and no two have the same.
func TestRules(t *testing.T) {
	var names []string
	for rule := range breaks.Rules(&raft.Faults{}) {
		if slices.Contains(names, rule) {
			t.Errorf("two rules are called %s", rule)
		}
		names = append(names, rule)
	}
	for _, want := range []string{"recover-by-id", "reuse-config-ids", "witness-no-pool-keys", "superquorum-less"} {
		if !slices.Contains(names, want) {
			t.Errorf("no rule %s among %v", want, names)
		}
	}
}

// Ensure that the documents name every negative control.
func TestAll_documented(t *testing.T) {
	document, err := os.ReadFile("../../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range breaks.All() {
		if !strings.Contains(string(document), "\n| `"+b.Name+"` | ") {
			t.Errorf("docs/simulation.md has no row for %s", b.Name)
		}
	}
}
