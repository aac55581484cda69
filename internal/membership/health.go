package membership

import "github.com/quorate/quorate/internal/consensus"

// maxGapMS is the longest time between two looks. After more of it, or if time went back, the clock was set or the leader
// stood still, and nothing that was seen before proves anything.
const maxGapMS = 10_000

// HealthHistory is since when each member has been fit to vote, or dead, as this leader saw it, and for how long it has seen
// the jobs of Care. The zero value has seen nothing.
type HealthHistory struct {
	leader  consensus.MemberID
	last    int64 // when it looked, Unix milliseconds
	members []health
	jobs    []careAge
}

// careAge is how old a job of Care is at least: for how long this leader has known of it, by its own clock. The times that
// another leader wrote into the job are of another clock, and say nothing here.
type careAge struct {
	id             JobID
	beganMS, endMS int64 // since it was known, and since it was known to have ended
	ended          bool
}

// health is that of one member, and since when it is so.
type health struct {
	id     consensus.MemberID
	steady bool // it could vote at once
	since  int64
	dead   bool
	back   bool // it was dead and was heard again, at backAt
	backAt int64
}

// record takes note of a view, and of the jobs that are known with it.
func (h *HealthHistory) record(p *Policy, v *View, jobs []Job) {
	h.age(v, jobs)
	if h.leader != v.Leader || v.Now < h.last || v.Now-h.last > maxGapMS {
		*h = HealthHistory{leader: v.Leader, jobs: h.jobs}
	}
	h.last = v.Now
	seen := make([]health, 0, len(v.Members))
	for i := range v.Members {
		m := &v.Members[i]
		s := h.of(m.ID)
		fit := m.Started && m.Active && m.CaughtUp && !receivesSnapshot(*m)
		if fit && !s.steady {
			s.since = v.Now
		}
		s.steady = fit
		dead := p.dead(m)
		switch {
		case dead:
			s.back = false
		case s.dead:
			s.back, s.backAt = true, v.Now
		case v.Now-s.backAt >= p.StableMS:
			s.back = false
		}
		s.dead = dead
		seen = append(seen, s)
	}
	h.members = seen
}

// age lets the jobs of Care grow older by the time since the last look. If that was long, the clock was set or the leader stood
// still: no more of it counts than between two looks.
func (h *HealthHistory) age(v *View, jobs []Job) {
	passed := max(0, min(v.Now-h.last, maxGapMS))
	var seen []careAge
	for i := range jobs {
		j := &jobs[i]
		if !ByCare(j) {
			continue
		}
		a, known := h.ageOf(j.ID)
		if known && h.leader == v.Leader {
			a.beganMS += passed
			if a.ended {
				a.endMS += passed
			}
		}
		a.ended = j.State.Ended()
		seen = append(seen, a)
	}
	h.jobs = seen
}

// ageOf returns the age of a job of Care: none, if it was not known at the last look.
func (h *HealthHistory) ageOf(id JobID) (age careAge, known bool) {
	for _, a := range h.jobs {
		if a.id == id {
			return a, true
		}
	}
	return careAge{id: id}, false
}

func (h *HealthHistory) of(id consensus.MemberID) health {
	for _, s := range h.members {
		if s.id == id {
			return s
		}
	}
	return health{id: id}
}

// stable reports whether a member could have voted at any time for long enough.
func (h *HealthHistory) stable(p *Policy, id consensus.MemberID) bool {
	s := h.of(id)
	return s.steady && h.last-s.since >= p.StableMS
}

// dead reports whether a member has been silent for so long that it is not waited for any more.
func (p *Policy) dead(m *MemberView) bool { return !m.Active && m.SilentMS > p.DeadAfterMS }
