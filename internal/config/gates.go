package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// FeatureGates are etcd's switches for features that are not final. The zero value has every gate at its default.
type FeatureGates struct {
	set []gateSetting // sorted by name
}

type gateSetting struct {
	name string
	on   bool
}

// gate is a known feature gate; beta gates are on unless switched off.
type gate struct {
	name string
	beta bool
	idle string // why it makes no difference here; empty: it does
}

var gates = []gate{
	{"CompactHashCheck", false, "members always compare what they applied; --compact-hash-check-time says how often"},
	{"FastLeaseKeepAlive", true, "a keep-alive never waits for what is applied"},
	{"InitialCorruptCheck", false, ""},
	{"LeaseCheckpoint", false, "remaining times are not in the log: a new leader gives each lease all of its time again"},
	{"LeaseCheckpointPersist", false, "remaining times are not in the log"},
	{"PriorityRequest", false, "no request has priority"},
	{"SetMemberLocalAddr", false, "the system chooses the address from which peers are dialled"},
	{"StopGRPCServiceOnDefrag", false, "defragmentation stops nothing"},
	{"TxnModeWriteWithSharedBuffer", true, "there is no bbolt buffer to share"},
}

// Gate is a feature gate as it is set.
type Gate struct {
	Name  string
	Stage string // ALPHA or BETA, as etcd says it
	On    bool
}

// All returns every known gate, by name.
func (g FeatureGates) All() []Gate {
	var all []Gate
	for _, known := range gates {
		stage := "ALPHA"
		if known.beta {
			stage = "BETA"
		}
		all = append(all, Gate{Name: known.name, Stage: stage, On: g.Enabled(known.name)})
	}
	return all
}

// Enabled tells whether the named gate is on. AllAlpha and AllBeta speak for the gates that were not named.
func (g FeatureGates) Enabled(name string) bool {
	if on, given := g.given(name); given {
		return on
	}
	for _, known := range gates {
		if known.name != name {
			continue
		}
		class := "AllAlpha"
		if known.beta {
			class = "AllBeta"
		}
		if on, given := g.given(class); given {
			return on
		}
		return known.beta
	}
	return false
}

func (g FeatureGates) given(name string) (on, given bool) {
	for _, s := range g.set {
		if s.name == name {
			return s.on, true
		}
	}
	return false, false
}

func (g FeatureGates) String() string {
	var parts []string
	for _, s := range g.set {
		parts = append(parts, s.name+"="+strconv.FormatBool(s.on))
	}
	return strings.Join(parts, ",")
}

func parseGates(text string) (FeatureGates, error) {
	var g FeatureGates
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, word, found := strings.Cut(part, "=")
		if !found {
			return FeatureGates{}, fmt.Errorf("%q is not GATE=true or GATE=false", part)
		}
		on, err := strconv.ParseBool(strings.TrimSpace(word))
		if err != nil {
			return FeatureGates{}, fmt.Errorf("gate %s: %w", name, errNotSwitch)
		}
		if !knownGate(name) {
			return FeatureGates{}, errors.New("unknown gate " + strconv.Quote(name) + ": choose from " + gateNames())
		}
		g.set = slices.DeleteFunc(g.set, func(s gateSetting) bool { return s.name == name })
		g.set = append(g.set, gateSetting{name, on})
	}
	slices.SortFunc(g.set, func(a, b gateSetting) int { return strings.Compare(a.name, b.name) })
	return g, nil
}

// idleGates tells of each gate that was given, differs from its default, and makes no difference here.
func (g FeatureGates) idleGates() []string {
	var told []string
	for _, known := range gates {
		if on, given := g.given(known.name); given && on != known.beta && known.idle != "" {
			told = append(told, fmt.Sprintf("--feature-gates=%s=%t is accepted for compatibility and has no effect: %s",
				known.name, on, known.idle))
		}
	}
	return told
}

func knownGate(name string) bool {
	return name == "AllAlpha" || name == "AllBeta" ||
		slices.ContainsFunc(gates, func(g gate) bool { return g.name == name })
}

func gateNames() string {
	names := []string{"AllAlpha", "AllBeta"}
	for _, g := range gates {
		names = append(names, g.name)
	}
	return strings.Join(names, ", ")
}

func featureGates(at func(*Config) *FeatureGates) value {
	return field[FeatureGates]{at, parseGates, FeatureGates.String, nil}
}
