package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity is the impact of a finding; the smaller the worse.
type Severity int

// The severities.
const (
	CannotWrite  Severity = 1 + iota // writes stop, of all clients or of those of a member
	NextFailure                      // writes stop at the next failure, or soon by themselves
	SlowerThanIs                     // something is slower, or less, than it should be
	Advice                           // nothing is wrong yet
)

// String says the severity in words.
func (s Severity) String() string {
	switch s {
	case CannotWrite:
		return "cannot write"
	case NextFailure:
		return "next failure"
	case SlowerThanIs:
		return "impaired"
	}
	return "advice"
}

// Finding is one thing that is wrong.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	// Members are the names of those that it is about, sorted; empty: the cluster.
	Members []string `json:"members,omitempty"`
	// Sentence has subject, cause and evidence, and since when it is so as far as that is known.
	Sentence string `json:"sentence"`
	// Cure is a command, or what else to do first.
	Cure string `json:"cure"`
	// Because is the finding that explains this one; empty: none does.
	Because Code `json:"because,omitempty"`
}

// found makes a finding about some members.
func found(code Code, severity Severity, members []string, cure, format string, args ...any) Finding {
	members = slices.Clone(members)
	slices.Sort(members)
	return Finding{Code: code, Severity: severity, Members: slices.Compact(members), Cure: cure,
		Sentence: fmt.Sprintf(format, args...)}
}

// order puts causes before their effects, and the worst first.
func order(all []Finding) []Finding {
	all = merge(all)
	because := make([]int, len(all)) // the place of the cause, or -1
	for i := range all {
		because[i] = causeOf(all, i)
	}
	for i := range all { // a cause is as bad as the worst of its effects
		for at, hops := because[i], 0; at >= 0 && hops < len(all); at, hops = because[at], hops+1 {
			all[at].Severity = min(all[at].Severity, all[i].Severity)
		}
	}
	for i := range all {
		if because[i] >= 0 {
			all[i].Because = all[because[i]].Code
		}
	}
	roots := make([]int, 0, len(all))
	for i := range all {
		if because[i] < 0 {
			roots = append(roots, i)
		}
	}
	before := func(a, b int) int {
		return cmp.Or(cmp.Compare(all[a].Severity, all[b].Severity), cmp.Compare(rank(all[a].Code), rank(all[b].Code)),
			slices.Compare(all[a].Members, all[b].Members))
	}
	slices.SortStableFunc(roots, before)
	var out []Finding
	var follow func(at int)
	follow = func(at int) {
		out = append(out, all[at])
		var effects []int
		for i := range all {
			if because[i] == at {
				effects = append(effects, i)
			}
		}
		slices.SortStableFunc(effects, before)
		for _, i := range effects {
			follow(i)
		}
	}
	for _, at := range roots {
		follow(at)
	}
	return out
}

// causeOf returns the place of the finding that explains one, or -1. Causes stand before effects in the table of codes, so
// that no two explain each other.
func causeOf(all []Finding, effect int) int {
	best := -1
	for i := range all {
		if i == effect || rank(all[i].Code) >= rank(all[effect].Code) || !explains(&all[i], &all[effect]) {
			continue
		}
		if best < 0 || rank(all[i].Code) < rank(all[best].Code) {
			best = i
		}
	}
	return best
}

// explains reports whether a cause and an effect are about the same members, as far as that matters for the cause.
func explains(cause, effect *Finding) bool {
	row := codes[rank(cause.Code)]
	if slices.Contains(row.everywhere, effect.Code) {
		return true
	}
	return slices.Contains(row.explains, effect.Code) && slices.ContainsFunc(cause.Members, func(name string) bool {
		return slices.Contains(effect.Members, name)
	})
}

// merge makes one finding of those that have code and severity in common. The first sentence stays, and names the others.
func merge(all []Finding) []Finding {
	var out []Finding
	for i := range all {
		f := all[i]
		at := slices.IndexFunc(out, func(o Finding) bool { return o.Code == f.Code && o.Severity == f.Severity })
		if at < 0 {
			out = append(out, f)
			continue
		}
		same := &out[at]
		var more []string
		for _, name := range f.Members {
			if !slices.Contains(same.Members, name) {
				more = append(more, name)
			}
		}
		if len(more) == 0 {
			continue
		}
		const also = "; the same of "
		if text, list, others := strings.Cut(same.Sentence, also); others {
			same.Sentence = text + also + list + ", " + strings.Join(more, ", ")
		} else {
			same.Sentence += also + strings.Join(more, ", ")
		}
		same.Members = append(same.Members, more...)
		slices.Sort(same.Members)
	}
	return out
}

// Worst is the severity of the worst finding; zero: there is none.
func Worst(all []Finding) (worst Severity) {
	for i := range all {
		if worst == 0 || all[i].Severity < worst {
			worst = all[i].Severity
		}
	}
	return worst
}
