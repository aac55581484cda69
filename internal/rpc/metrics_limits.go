package rpc

import (
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// collectLimits shows what rules refused here, and what their prefixes have.
func (s *shared) collectLimits(e *metrics.Emitter) {
	machine, release := s.options.Member.Machine()
	uses := machine.LimitUses()
	release()
	s.limiter.Refused(s.options.Member.Limits(), func(limit string, refused uint64) {
		e.Counter("quorate_limited_requests_total", "Requests that this member refused by a limit of users or prefixes.",
			float64(refused), "limit", limit)
	})
	for i := range uses {
		u := &uses[i]
		e.Gauge("quorate_limit_used_bytes", "Bytes of the keys and values with the prefix of a limit that has a quota.",
			float64(u.Bytes), "limit", u.Rule.Name)
		e.Gauge("quorate_limit_used_keys", "Keys with the prefix of a limit that has a quota.", float64(u.Keys), "limit",
			u.Rule.Name)
		e.Gauge("quorate_limit_used_ratio", "How much of its quota the prefix of a limit has, by the bound that is nearer.",
			u.Full(), "limit", u.Rule.Name)
	}
}

// LimitTally has what a limit of users and prefixes has refused here, and how many hundredths of its quota are used.
type LimitTally struct {
	Name    string
	Refused uint64
	Used    uint64
	Bound   string // of the quota that is nearer: keys or bytes; empty: there is none
	Has     int64  // of it
	Most    int64  // that it allows
}

// nearerBound is how much a prefix has of the bound of its quota that it reaches first.
func nearerBound(u *apply.LimitUse) LimitTally {
	t := LimitTally{Used: uint64(min(u.Full()*100, 1000))}
	share := -1.0
	for _, b := range [...]struct {
		name string
		kind kv.LimitKind
		has  int64
	}{{"keys", kv.LimitQuotaKeys, u.Keys}, {"bytes", kv.LimitQuotaBytes, u.Bytes}} {
		if bound := u.Rule.Bounds[b.kind]; bound.Set && float64(b.has)/float64(max(bound.Most, 1)) > share {
			share = float64(b.has) / float64(max(bound.Most, 1))
			t.Bound, t.Has, t.Most = b.name, b.has, bound.Most
		}
	}
	return t
}

// tallyLimits returns what limits have refused here, and how much of their quotas is used.
func (s *shared) tallyLimits() (all []LimitTally) {
	set := s.options.Member.Limits()
	if set == nil {
		return nil
	}
	machine, release := s.options.Member.Machine()
	used := map[string]LimitTally{}
	for _, u := range machine.LimitUses() {
		if u.Counted {
			used[u.Rule.Name] = nearerBound(&u)
		}
	}
	release()
	s.limiter.Refused(set, func(limit string, refused uint64) {
		one := used[limit]
		one.Name, one.Refused = limit, refused
		all = append(all, one)
	})
	return all
}
