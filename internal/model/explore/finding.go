package explore

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/model"
)

// Finding is a broken law with a shrunk trace that breaks it.
type Finding struct {
	Broken string // the law's name, a colon, and the observation
	Walk   uint64
	model  *model.Model
	trace  []model.Action
}

// Law is the name of the broken law.
func (f *Finding) Law() string { return law(f.Broken) }

// Steps is the length of the trace.
func (f *Finding) Steps() int { return len(f.trace) }

// Cluster is the name of the scenario.
func (f *Finding) Cluster() string { return f.model.Scenario.Name }

// keyNames are the names of sets of keys.
var keyNames = [...]string{"-", "a", "b", "ab"}

// Print writes a finding as a readable trace.
func (f *Finding) Print(out io.Writer) {
	m := f.model
	sc := m.Scenario
	fmt.Fprintf(out, "  cluster %s, walk %d, %d steps; keys", sc.Name, f.Walk, len(f.trace))
	for p := range sc.Proposals {
		fmt.Fprintf(out, " P%d:%s", p, keyNames[sc.Footprint[p]&3])
		if sc.Lies[p] != 0 {
			fmt.Fprintf(out, " P%d':%s", p, keyNames[sc.Lies[p]&3])
		}
	}
	if len(sc.Configs) > 1 {
		fmt.Fprintf(out, "; configurations")
		for i, c := range sc.Configs {
			fmt.Fprintf(out, " %d:%v", i, c)
		}
	}
	fmt.Fprintln(out)
	var s model.State
	m.Begin(&s)
	for i, a := range f.trace {
		before := s
		m.Step(&s, a)
		fmt.Fprintf(out, "  %2d. %s%s\n", i+1, a, model.Outcome(&before, &s, a))
	}
	fmt.Fprintf(out, "   => %s\n", f.Broken)
	s.Print(out, sc.Members)
}

// law is the name with which a finding begins.
func law(finding string) string {
	name, _, _ := strings.Cut(finding, ":")
	return name
}

// replay runs the possible actions of a trace, up to a broken law, and returns both.
func replay(m *model.Model, trace []model.Action) ([]model.Action, string) {
	var s model.State
	m.Begin(&s)
	var out []model.Action
	for _, a := range trace {
		ok, bad := m.Step(&s, a)
		if !ok {
			continue
		}
		out = append(out, a)
		if bad != "" {
			return out, bad
		}
	}
	return out, ""
}

// shrink removes steps, in runs and then in pairs, as long as the same law breaks.
func shrink(m *model.Model, trace []model.Action, broken string) ([]model.Action, string) {
	name := law(broken)
	try := func(shorter []model.Action) bool {
		o, bad := replay(m, shorter)
		if bad == "" || law(bad) != name || len(o) >= len(trace) {
			return false
		}
		trace, broken = o, bad
		return true
	}
	for again := true; again; {
		again = false
		for size := len(trace) / 2; size >= 1; size /= 2 {
			for i := 0; i+size <= len(trace); {
				if try(slices.Delete(slices.Clone(trace), i, i+size)) {
					again = true
				} else {
					i++
				}
			}
		}
		again = shrinkPairs(&trace, try) || again
	}
	return trace, broken
}

// shrinkPairs removes pairs of steps that only make sense together.
func shrinkPairs(trace *[]model.Action, try func([]model.Action) bool) (shorter bool) {
	for i := 0; i < len(*trace) && len(*trace) < 60; i++ {
		for k := i + 1; k < len(*trace); k++ {
			t := slices.Delete(slices.Clone(*trace), k, k+1)
			if try(slices.Delete(t, i, i+1)) {
				shorter = true
				break
			}
		}
	}
	return shorter
}
