package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
	known := indexed(all)
	for i := range all {
		because[i] = known.of(&all[i])
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
	roots, effects := make([]int, 0, len(all)), make([][]int, len(all))
	for i := range all {
		if because[i] < 0 {
			roots = append(roots, i)
		} else {
			effects[because[i]] = append(effects[because[i]], i)
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
		slices.SortStableFunc(effects[at], before)
		for _, i := range effects[at] {
			follow(i)
		}
	}
	for _, at := range roots {
		follow(at)
	}
	return out
}

// causes finds quickly which finding explains another one.
type causes struct {
	first map[Code]int          // the first finding of a code
	about map[causeOfMember]int // the same, of those about a member
}

type causeOfMember struct {
	code Code
	name string
}

func indexed(all []Finding) causes {
	c := causes{map[Code]int{}, map[causeOfMember]int{}}
	for i := range slices.Backward(all) {
		c.first[all[i].Code] = i
		for _, name := range all[i].Members {
			c.about[causeOfMember{all[i].Code, name}] = i
		}
	}
	return c
}

// of returns the place of the finding that explains one, or -1. Causes stand before effects in the table of codes, so that no
// two explain each other.
func (c causes) of(effect *Finding) int {
	for _, row := range codes[:rank(effect.Code)] {
		at, found := c.first[row.Code]
		switch {
		case !found:
		case slices.Contains(row.everywhere, effect.Code):
			return at
		case slices.Contains(row.explains, effect.Code): // of the same members
			best := -1
			for _, name := range effect.Members {
				if at, found := c.about[causeOfMember{row.Code, name}]; found && (best < 0 || at < best) {
					best = at
				}
			}
			if best >= 0 {
				return best
			}
		}
	}
	return -1
}

// mostNamed is how many members, or pairs of them, a sentence names behind "the same of".
const mostNamed = 16

// merge makes one finding of those that say the same of different members: code, severity, cure, and the sentence but for the
// names agree. The first sentence stays, and names the others. A finding that differs in a word stands by itself.
func merge(all []Finding) []Finding {
	type key struct {
		code           Code
		severity       Severity
		cure, sentence string
	}
	places, told := map[key]int{}, map[string]bool{}
	var out []Finding
	var also [][]string // of each finding of out
	for i := range all {
		f := all[i]
		at, again := places[key{f.Code, f.Severity, f.Cure, nameless(&f)}]
		if !again {
			at = len(out)
			places[key{f.Code, f.Severity, f.Cure, nameless(&f)}] = at
			out, also = append(out, f), append(also, nil)
		}
		members := fmt.Sprintf("%d %q", at, f.Members)
		if again && !told[members] {
			also[at] = append(also[at], strings.Join(f.Members, " and "))
			out[at].Members = append(out[at].Members, f.Members...)
		}
		told[members] = true
	}
	for i, names := range also {
		if len(names) == 0 {
			continue
		}
		text := strings.Join(names[:min(len(names), mostNamed)], ", ")
		if more := len(names) - mostNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		out[i].Sentence += "; the same of " + text
		slices.Sort(out[i].Members)
		out[i].Members = slices.Compact(out[i].Members)
	}
	return out
}

// nameless is a sentence without the names of the members that it is about.
func nameless(f *Finding) string {
	text := f.Sentence
	for _, name := range f.Members {
		text = without(text, name)
	}
	return text
}

// without puts a sign in the places of a name that are words of their own.
func without(text, name string) string {
	if name == "" {
		return text
	}
	var out strings.Builder
	for {
		at := strings.Index(text, name)
		if at < 0 {
			return out.String() + text
		}
		end := at + len(name)
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[end:])
		out.WriteString(text[:at])
		if inWord(before) || inWord(after) {
			out.WriteString(name)
		} else {
			out.WriteString("\x00") // a sentence has none
		}
		text = text[end:]
	}
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Worst is the severity of the worst finding; zero: there is none.
func Worst(all []Finding) (worst Severity) {
	for i := range all {
		if worst == 0 || all[i].Severity < worst {
			worst = all[i].Severity
		}
	}
	return worst
}
