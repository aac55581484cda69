package level

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// PolicyKind says when the active level rises once all members know a higher one. The numbers are on disk and in the log.
type PolicyKind uint8

const (
	PolicyUnset PolicyKind = 0 // the cluster has none yet: the leader proposes that of its flag
	PolicySoak  PolicyKind = 1 // once all members have run a build that knows it for a time
	PolicyNow   PolicyKind = 2 // at once
	PolicyHold  PolicyKind = 3 // only on an operator's word
)

// MaxSoak is the longest time of a PolicySoak, which is in whole seconds.
const MaxSoak = 90 * 24 * time.Hour

// Policy is a policy of raising the active level. The zero value is PolicyUnset.
type Policy struct {
	Kind    PolicyKind
	Seconds int64 // of PolicySoak, zero of the others
}

// Soak returns how long all members must run a build before its level becomes active.
func (p Policy) Soak() time.Duration { return time.Duration(p.Seconds) * time.Second }

// errPolicy is the fault of a text that names no policy.
var errPolicy = errors.New("want soak=DURATION, such as soak=24h, or now, or hold")

// ParsePolicy reads what String prints.
func ParsePolicy(text string) (Policy, error) {
	switch text {
	case "now":
		return Policy{Kind: PolicyNow}, nil
	case "hold":
		return Policy{Kind: PolicyHold}, nil
	}
	duration, found := strings.CutPrefix(text, "soak=")
	soak, err := time.ParseDuration(duration)
	if !found || err != nil {
		return Policy{}, errPolicy
	}
	p := Policy{Kind: PolicySoak, Seconds: int64(soak / time.Second)}
	if !p.Valid() || soak%time.Second != 0 {
		return Policy{}, fmt.Errorf("a soak lasts 1s to %s, in whole seconds", shortDuration(MaxSoak))
	}
	return p, nil
}

// Valid reports whether a cluster may have the policy.
func (p Policy) Valid() bool {
	switch p.Kind {
	case PolicySoak:
		return p.Seconds >= 1 && p.Soak() <= MaxSoak
	case PolicyNow, PolicyHold:
		return p.Seconds == 0
	}
	return false
}

func (p Policy) String() string {
	switch p.Kind {
	case PolicySoak:
		return "soak=" + shortDuration(p.Soak())
	case PolicyNow:
		return "now"
	case PolicyHold:
		return "hold"
	}
	return "unset"
}

// shortDuration is a duration without the units that are zero: 24h, not 24h0m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Rise is the replicated state that decides when the active level rises.
type Rise struct {
	Policy Policy
	// Generation changes with the policy, and where a soak ends or begins anew. A request of a leader or an operator names the
	// one that it was decided on: if it was delayed, it changes nothing.
	Generation uint64
	// Lowest is the lowest level that any member has ever published, also one that was removed. Zero: none has.
	Lowest Level
	// Born is the highest level that all members knew when a leader first saw that all of them had published their levels,
	// and at most Lowest: the cluster never ran a build that does not know it, and so there is no way back that raising to it
	// would end. Zero: that time has not come.
	Born Level
	// Level is the one that soaks, zero if none does, and Seconds for how long all members have run builds that know it.
	Level   Level
	Seconds int64
	// Target is the release that an operator goes back to by etcd's Downgrade, and Before the policy in whose place the hold
	// for that has come. Zero: no downgrade is under way.
	Target Release
	Before Policy
}

// EndDowngrade puts the policy back that stood before a downgrade, if one is under way. A soak begins anew: an operator who
// cancels did not ask for the level to rise.
func (r *Rise) EndDowngrade() {
	if !r.Target.IsZero() {
		r.Policy, r.Target, r.Before = r.Before, Release{}, Policy{}
		r.Level, r.Seconds = 0, 0
	}
}

// Soaked returns for how long a level has soaked.
func (r *Rise) Soaked(l Level) time.Duration {
	if r.Level != l {
		return 0
	}
	return time.Duration(r.Seconds) * time.Second
}

// Allows reports whether the policy lets the active level rise to one that all members know.
func (r *Rise) Allows(to Level) bool {
	switch {
	case to <= r.Born && r.Target.IsZero(), r.Policy.Kind == PolicyNow:
		return true
	case r.Policy.Kind == PolicySoak:
		return r.Level == to && r.Seconds >= r.Policy.Seconds
	}
	return false
}

// Waits describes why the policy does not let the active level rise to one that all members know, and what to do.
func (r *Rise) Waits(to Level) string {
	const now = "; `quorate upgrade finalize` raises it now, and ends the way back to the former build"
	switch {
	case r.Policy.Kind == PolicyHold:
		return "it is held (`quorate upgrade hold`)" + now
	case r.Policy.Kind != PolicySoak:
		return "the leader has not set a policy yet, which takes a moment: try again"
	}
	return fmt.Sprintf("members run it for %s more first%s", shortDuration(max(r.Policy.Soak()-r.Soaked(to), time.Second)), now)
}
