package membership

import "github.com/quorate/quorate/internal/consensus"

// maxGapMS is the longest time between two looks. After more of it, or if time went back, the clock was set or the leader
// stood still, and nothing that was seen before proves anything.
const maxGapMS = 10_000

// Watchfulness is what a leader has seen of its members while it cared for them. The zero value has seen nothing.
type Watchfulness struct {
	leader  consensus.MemberID
	last    int64 // when it looked, Unix milliseconds
	members []sighting
}

// sighting is one member, and since when it is so.
type sighting struct {
	id     consensus.MemberID
	steady bool // it could vote at once
	since  int64
	dead   bool
	back   bool // it was dead and was heard again, at backAt
	backAt int64
}

// look takes note of a view.
func (w *Watchfulness) look(p *Policy, v *View) {
	if w.leader != v.Leader || v.Now < w.last || v.Now-w.last > maxGapMS {
		*w = Watchfulness{leader: v.Leader}
	}
	w.last = v.Now
	seen := make([]sighting, 0, len(v.Members))
	for i := range v.Members {
		m := &v.Members[i]
		s := w.of(m.ID)
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
	w.members = seen
}

func (w *Watchfulness) of(id consensus.MemberID) sighting {
	for _, s := range w.members {
		if s.id == id {
			return s
		}
	}
	return sighting{id: id}
}

// stable reports whether a member could have voted at any time for long enough.
func (w *Watchfulness) stable(p *Policy, id consensus.MemberID) bool {
	s := w.of(id)
	return s.steady && w.last-s.since >= p.StableMS
}

// dead reports whether a member has been silent for so long that it is not waited for any more.
func (p *Policy) dead(m *MemberView) bool { return !m.Active && m.SilentMS > p.DeadAfterMS }
