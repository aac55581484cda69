package rules

import (
	"iter"
	"strings"
)

// Set says which rules are dropped. The zero value is the full protocol.
type Set [Count]bool

// Without returns a set in which some rules are dropped.
func Without(dropped ...Rule) (s Set) {
	for _, r := range dropped {
		s[r] = true
	}
	return s
}

// Text returns the row of a rule.
func (r Rule) Text() *Text { return &table[r] }

func (r Rule) String() string { return table[r].Name }

// All yields the rules that can be dropped in one of the parts, in the order of the table.
func All(in Part) iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for r := None + 1; r < Count; r++ {
			if table[r].In&in != 0 && !yield(r) {
				return
			}
		}
	}
}

// Named returns the rule called name.
func Named(name string) (Rule, bool) {
	for r := None + 1; r < Count; r++ {
		if table[r].Name == name {
			return r, true
		}
	}
	return None, false
}

// Demands joins the sentences of several rules.
func Demands(rules ...Rule) string {
	sentences := make([]string, len(rules))
	for i, r := range rules {
		sentences[i] = r.Text().Demands
	}
	return strings.Join(sentences, ", and ")
}
