package offers

import (
	"math"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// fewVoters is the largest cluster that gains nothing by the fast path: with three voters, counting acknowledgements is
// as fast.
const fewVoters = 3

// busyFor is how long a member counts as one that proposes.
const busyFor = 5 * time.Second

// Scheduler decides when one member offers proposals, stamps them, and delays received offers until they are due.
type Scheduler struct {
	setting Setting
	faults  Faults
	policy  Policy
	stamps  Stamps
	queue   Queue
	heard   map[consensus.MemberID]time.Time // when a proposer was heard last
}

// New returns the scheduler of a member.
func New(setting Setting, faults Faults) *Scheduler {
	return &Scheduler{
		setting: setting, faults: faults, policy: Policy{faults: faults}, heard: map[consensus.MemberID]time.Time{},
	}
}

// View is what the decision depends on.
type View struct {
	Self, Leader consensus.MemberID
	Voters       []consensus.MemberID // in force here
	Outcomes     Outcomes             // since the member started
	// Distance is the round trip to another member; false while it is not measured.
	Distance func(to consensus.MemberID) (time.Duration, bool)
}

// Decide returns whether the member counts the acknowledgements of its proposals itself (inferred commits), and whether it
// offers its proposals to all voters. It must be called each tick.
func (s *Scheduler) Decide(now time.Time, v *View) (counts, offers bool) {
	mode := s.policy.Look(now, v.Outcomes)
	s.stamps.SetAhead(0)
	counts = s.counts(v)
	always := s.setting == Always
	if len(v.Voters) == 0 || !counts || ((mode == Paused || len(v.Voters) <= fewVoters) && !always) {
		return counts, false
	}
	if mode == Stamped {
		s.stamps.SetAhead(s.ahead(now, v))
	}
	return counts, true
}

func (s *Scheduler) counts(v *View) bool {
	if v.Leader == consensus.NoMember || v.Leader == v.Self {
		return false
	}
	distance, _ := v.Distance(v.Leader)
	return s.setting.Pays(distance)
}

// ahead returns how far ahead the offers of this member must be stamped, zero if the round trips are unknown. Voters
// that propose themselves must receive the offer in time, too, because each counts its own verdict.
func (s *Scheduler) ahead(now time.Time, v *View) time.Duration {
	toLeader, known := v.Distance(v.Leader)
	if !known {
		return 0
	}
	var others []time.Duration
	toBusy := time.Duration(0)
	for _, id := range v.Voters {
		distance, known := v.Distance(id)
		if !known || id == v.Self || id == v.Leader {
			continue
		}
		others = append(others, distance)
		if s.busy(now, id) {
			toBusy = max(toBusy, distance)
		}
	}
	return Ahead(max(toLeader, toBusy), others, quorum.Super(len(v.Voters))-2) // beside this member and the leader
}

// busy reports whether a member has proposed lately.
func (s *Scheduler) busy(now time.Time, id consensus.MemberID) bool {
	at, heard := s.heard[id]
	return heard && now.Sub(at) < busyFor
}

// Stamp marks the offers among messages that leave now.
func (s *Scheduler) Stamp(now time.Time, messages []consensus.Message) { s.stamps.Stamp(now, messages) }

// Delay takes a message with a stamp and keeps it until it is due. It returns false if the message has no stamp, or one
// too far ahead.
func (s *Scheduler) Delay(now time.Time, m *consensus.Message) bool {
	if !HasStamp(m) {
		return false
	}
	if len(m.Proposals) == 0 || !m.Proposals[0].ID.Session.OfClient() {
		s.heard[m.From] = now // not of clients: they do not need the hint
	}
	if tooFarAhead(m.Due, now) && !s.faults.BelieveStamps {
		return false
	}
	s.queue.Put(*m)
	return true
}

// Take appends the messages that are due to dst, in the order of their stamps.
func (s *Scheduler) Take(dst []consensus.Message, now time.Time) []consensus.Message {
	if s.faults.BelieveStamps {
		return s.queue.take(dst, now, math.MaxInt64)
	}
	return s.queue.Take(dst, now)
}

// Next returns when the next message is due; false if none waits.
func (s *Scheduler) Next() (time.Time, bool) { return s.queue.Next() }
