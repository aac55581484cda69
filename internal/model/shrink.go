package model

import "slices"

// Finding is a broken law with a shrunk trace that breaks it.
type Finding struct {
	Broken string // the law's name, a colon, and what was seen
	Walk   uint64
	model  *Model
	trace  []action
}

// Law is the name of the broken law.
func (f *Finding) Law() string { return law(f.Broken) }

// Steps is the length of the trace.
func (f *Finding) Steps() int { return len(f.trace) }

// Cluster is the name of the scenario.
func (f *Finding) Cluster() string { return f.model.scenario.Name }

// Replay runs the trace under other rules and returns what breaks, or "".
func (f *Finding) Replay(r Rules) string {
	_, broken := replay(New(f.model.scenario, r), f.trace)
	return broken
}

// replay runs the possible actions of a trace and returns them, up to a broken law.
func replay(m *Model, trace []action) ([]action, string) {
	var s state
	m.begin(&s)
	var out []action
	for _, a := range trace {
		ok, bad := m.step(&s, a)
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
func shrink(m *Model, trace []action, broken string) ([]action, string) {
	name := law(broken)
	try := func(shorter []action) bool {
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

// shrinkPairs removes two steps that only make sense together.
func shrinkPairs(trace *[]action, try func([]action) bool) (shorter bool) {
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
