package offers

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// fewVoters is how many voters gain nothing by the fast path: what is counted comes as early with three.
const fewVoters = 3

// busyFor is how long a member counts as one that proposes.
const busyFor = 5 * time.Second

// Path is what one member does on the fast path besides the protocol.
type Path struct {
	setting Setting
	policy  Policy
	stamps  Stamps
	queue   Queue
	heard   map[consensus.MemberID]time.Time // when a proposer was heard last
}

// New returns the path of a member.
func New(setting Setting) *Path {
	return &Path{setting: setting, heard: map[consensus.MemberID]time.Time{}}
}

// View is what the decision depends on.
type View struct {
	Self, Leader consensus.MemberID
	Voters       []consensus.MemberID // in force here
	Outcomes     Outcomes             // since the member started
	// Distance is the round trip to another member; false while nobody knows.
	Distance func(to consensus.MemberID) (time.Duration, bool)
}

// Decide says whether the member counts by itself who holds what it proposes next, and whether it offers that to all voters.
// It is to be called each tick.
func (p *Path) Decide(now time.Time, v *View) (counts, offers bool) {
	mode := p.policy.Look(now, v.Outcomes)
	p.stamps.SetAhead(0)
	counts = p.counts(v)
	always := p.setting == Always
	if len(v.Voters) == 0 || !counts || ((mode == Paused || len(v.Voters) <= fewVoters) && !always) {
		return counts, false
	}
	if mode == Stamped {
		p.stamps.SetAhead(p.ahead(now, v))
	}
	return counts, true
}

func (p *Path) counts(v *View) bool {
	if v.Leader == consensus.NoMember || v.Leader == v.Self {
		return false
	}
	distance, _ := v.Distance(v.Leader)
	return p.setting.Pays(distance)
}

// ahead returns how far ahead the offers of this member must be stamped, zero if nobody knows. Voters that propose
// themselves are among those that must receive all offers in one order: each counts itself.
func (p *Path) ahead(now time.Time, v *View) time.Duration {
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
		if p.busy(now, id) {
			toBusy = max(toBusy, distance)
		}
	}
	return Ahead(max(toLeader, toBusy), others, quorum.Super(len(v.Voters))-2) // beside this member and the leader
}

// busy reports whether a member has proposed lately.
func (p *Path) busy(now time.Time, id consensus.MemberID) bool {
	at, heard := p.heard[id]
	return heard && now.Sub(at) < busyFor
}

// Stamp marks the offers among messages that leave now.
func (p *Path) Stamp(now time.Time, messages []consensus.Message) { p.stamps.Stamp(now, messages) }

// Hold keeps a message back that has a stamp; false if it has none, or one that nobody waits for.
func (p *Path) Hold(now time.Time, m *consensus.Message) bool {
	if !HasStamp(m) {
		return false
	}
	if len(m.Proposals) == 0 || !m.Proposals[0].ID.Session.OfClient() {
		p.heard[m.From] = now // clients see for themselves who is busy
	}
	if tooFarAhead(m.Due, now) {
		return false
	}
	p.queue.Put(*m)
	return true
}

// Take appends the messages that are due to dst, in the order of their stamps.
func (p *Path) Take(dst []consensus.Message, now time.Time) []consensus.Message {
	return p.queue.Take(dst, now)
}

// Next returns when the next message is due; false if none waits.
func (p *Path) Next() (time.Time, bool) { return p.queue.Next() }
