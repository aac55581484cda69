package rpc

import "github.com/quorate/quorate/internal/rpc/metrics"

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
}

// tallyLimits returns what limits have refused here, and how much of their quotas is used.
func (s *shared) tallyLimits() (all []LimitTally) {
	set := s.options.Member.Limits()
	if set == nil {
		return nil
	}
	machine, release := s.options.Member.Machine()
	used := map[string]uint64{}
	for _, u := range machine.LimitUses() {
		if u.Counted {
			used[u.Rule.Name] = uint64(min(u.Full()*100, 1000))
		}
	}
	release()
	s.limiter.Refused(set, func(limit string, refused uint64) {
		all = append(all, LimitTally{Name: limit, Refused: refused, Used: used[limit]})
	})
	return all
}
