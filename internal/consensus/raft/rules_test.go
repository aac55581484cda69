package raft_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/breaks"
	"github.com/quorate/quorate/internal/sim/lab"
)

// A rule has one name: that of the switch that drops it, with hyphens. Stories and scripts (testdata), walks (walk_all_test.go),
// the simulator (--break) and the documents use it.

// dropped are the rules that a story or a walk goes without.
type dropped struct {
	core  raft.Faults
	shell shellFaults
}

// drop switches rules off by their names.
func drop(names ...string) (d dropped, err error) {
	unknown := slices.Clone(names)
	for _, switches := range []any{&d.core, &d.shell} {
		for rule, off := range breaks.Rules(switches) {
			*off = slices.Contains(names, rule)
			unknown = slices.DeleteFunc(unknown, func(name string) bool { return name == rule })
		}
	}
	if len(unknown) > 0 {
		return d, fmt.Errorf("no rules %v", unknown)
	}
	return d, nil
}

// toldInLab are the rules whose loss a story of the laboratory shows. Its experiment drops no-notice, beside rules of its own.
func toldInLab() (rules []string) {
	for _, b := range lab.Breaks() {
		switch told := len(lab.StoriesOf([]string{b.Name})) > 0; {
		case told && b.Name == lab.ProtocolSwitched:
			rules = append(rules, "no-notice")
		case told:
			rules = append(rules, b.Name)
		}
	}
	return rules
}

// Ensure that every rule is shown to be needed: by a story or a script, by walks, by a test that names its switch, by the
// simulator, or by a story of the laboratory.
func TestFaults_shown(t *testing.T) {
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
	words := strings.FieldsFunc(shown.String(), func(r rune) bool { return strings.ContainsRune(" \t\n\"=.,:;(){}&", r) })
	for i, word := range words {
		words[i] = strings.ToLower(strings.ReplaceAll(word, "-", ""))
	}
	told := toldInLab()
	var d dropped
	for _, switches := range []any{&d.core, &d.shell} {
		for rule := range breaks.Rules(switches) {
			least := 1
			if switches == any(&d.shell) {
				least = 3 // its declaration, its use, and who shows it
			}
			flat, n := strings.ReplaceAll(rule, "-", ""), 0
			for _, word := range words {
				if word == flat {
					n++
				}
			}
			simulated := func(b breaks.Break) bool { return b.Name == rule }
			if n < least && !slices.ContainsFunc(breaks.All(), simulated) && !slices.Contains(told, rule) {
				t.Errorf("nobody shows what breaks without %s", rule)
			}
		}
	}
}
