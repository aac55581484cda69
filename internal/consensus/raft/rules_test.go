package raft_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/sim/lab"
)

// A rule has one name: that of the switch that drops it, with hyphens. Stories and scripts (testdata), walks (walk_all_test.go),
// the simulator (--break) and the documents use it.

// drop returns the rules with these names, dropped.
func drop(names ...string) (dropped rules.Set, err error) {
	for _, name := range names {
		rule, known := rules.Named(name)
		if !known || rule.Text().In&(rules.Core|rules.Harness) == 0 {
			return dropped, fmt.Errorf("no rule %s of the core, or of what runs it", name)
		}
		dropped[rule] = true
	}
	return dropped, nil
}

// toldInLab reports whether a story of the laboratory shows the loss without a rule.
func toldInLab(rule rules.Rule) bool {
	return slices.ContainsFunc(lab.Breaks(), func(b lab.Break) bool {
		return b.Drops(rule) && len(lab.StoriesOf([]string{b.Name})) > 0
	})
}

// Ensure that every rule is shown to be needed: by a story or a script, by walks, by a test that names its switch, by the
// simulator, or by a story of the laboratory.
func TestRules_shown(t *testing.T) {
	var shown strings.Builder
	for _, pattern := range []string{"*_test.go", "testdata/*.txt"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			shown.Write(content)
		}
	}
	words := strings.FieldsFunc(shown.String(), func(r rune) bool { return strings.ContainsRune(" \t\n\"=.,:;(){}[]&", r) })
	for i, word := range words {
		words[i] = strings.ToLower(strings.ReplaceAll(word, "-", ""))
	}
	for rule := range rules.All(rules.Core | rules.Harness) {
		least, flat, n := 1, strings.ReplaceAll(rule.String(), "-", ""), 0
		if rule.Text().In&rules.Harness != 0 {
			least = 2 // the state machine of these tests names it, too
		}
		for _, word := range words {
			if word == flat {
				n++
			}
		}
		if n < least && rule.Text().Law == "" && !toldInLab(rule) {
			t.Errorf("nothing shows what breaks without %v", rule)
		}
	}
}
