package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/reconfig"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// CaughtUpEntries is how many entries of the leader's log a learner that may be promoted lacks at most, beside the bytes of one
// append: about what a busy heartbeat interval brings. A ratio of indexes would say nothing about time.
const CaughtUpEntries = 1000

// syncPeers adds and drops peers as the configurations demand.
func (l *leader) syncPeers() {
	for _, id := range l.configs.Recipients() {
		l.addPeer(id)
	}
	for _, p := range l.peers {
		p.Leaving = !l.configs.Config().Contains(p.ID)
	}
}

// addRemoved makes a new leader replicate, for a while, to the members that the last change removed: a leader that removed
// itself has yet to learn the results of its clients' requests.
func (l *leader) addRemoved() {
	for _, id := range l.configs.Last().Tombs {
		if p := l.addPeer(id); p != nil {
			p.Leaving, p.LeavesAt = true, l.clock.now+uint64(l.opts.ElectionTicks)
		}
	}
}

// addPeer returns the peer that it added; nil if id is known already.
func (l *leader) addPeer(id consensus.MemberID) *progress.Peer {
	if id == l.opts.ID || l.peer(id) != nil {
		return nil
	}
	p := progress.New(id, l.log.Last()+1, l.opts.MaxInflightMessages, l.opts.MaxInflightBytes)
	p.HeardAt = l.clock.now // a new peer counts as active for one election timeout
	at := 0
	for at < len(l.peers) && l.peers[at].ID < id {
		at++
	}
	l.peers = slices.Insert(l.peers, at, p)
	return p
}

// forgetLeavers drops members whose removal was settled an election timeout ago. A member that does not know of its removal yet
// learns it from the answer to its pre-vote.
func (l *leader) forgetLeavers() {
	for i := 0; i < len(l.peers); {
		if p := l.peers[i]; p.Leaving && p.LeavesAt > 0 && l.clock.now >= p.LeavesAt {
			l.peers = slices.Delete(l.peers, i, i+1)
			continue
		}
		i++
	}
}

func (l *leader) facts() reconfig.Facts {
	facts := reconfig.Facts{
		Active:      []consensus.MemberID{l.opts.ID},
		CaughtUp:    []consensus.MemberID{l.opts.ID},
		Tombstones:  l.configs.Tombstones(),
		MaxLearners: l.opts.MaxLearners,
		Strict:      l.opts.StrictReconfig,
	}
	for _, p := range l.peers {
		if !l.active(p) {
			continue
		}
		facts.Active = append(facts.Active, p.ID)
		if l.caughtUp(p) {
			facts.CaughtUp = append(facts.CaughtUp, p.ID)
		}
	}
	return facts
}

// caughtUp reports whether a member follows the log and has nearly all of it: all committed entries, however many are on their
// way, or all but about one heartbeat's worth.
func (l *leader) caughtUp(p *progress.Peer) bool {
	if p.State != progress.Replicate {
		return false
	}
	near := l.log.Last()-p.Match <= CaughtUpEntries && l.log.SizeAfter(p.Match) <= l.opts.MaxMessageBytes
	return near || (p.Match >= l.log.Commit() && l.started())
}

func (l *leader) peer(id consensus.MemberID) *progress.Peer {
	for _, p := range l.peers {
		if p.ID == id {
			return p
		}
	}
	return nil
}

func (l *leader) active(p *progress.Peer) bool {
	return p.Heard && !p.Broken && !p.Denied && l.clock.now-p.HeardAt < uint64(l.opts.ElectionTicks)
}

// matchOf returns up to which index a member's log is durable and equal to the leader's. The leader's own disk counts like
// another's.
func (l *leader) matchOf(id consensus.MemberID) uint64 {
	if id == l.opts.ID {
		if l.opts.Dropped[rules.AckBeforeDurable] {
			return uint64(l.log.Last())
		}
		return uint64(l.log.Durable())
	}
	if p := l.peer(id); p != nil && !p.Denied {
		return uint64(p.Match)
	}
	return 0
}

// reached returns the value that a majority, of each set of voters, has reached.
func (r *Replica) reached(reached func(consensus.MemberID) uint64) uint64 {
	return r.configs.Reached(reached, r.opts.Dropped[rules.CountSelf] && r.lead != nil)
}

// quorumHeard reports whether the leader heard from a majority within an election timeout (Raft thesis, section 6.2). While it
// can abort the joint configuration that it is in, the outgoing voters are enough: no member is elected without them, and only
// this leader can abort the change if the incoming voters died.
func (l *leader) quorumHeard() bool {
	if l.reached(l.heardOne) == 1 {
		return true
	}
	if !l.started() || l.configs.MayAbort() != consensus.ReasonNone || l.configs.Last() != l.configs.InForce() {
		return false
	}
	return l.heardOf(l.configs.Config().Outgoing)
}

// heardOf reports whether this leader heard from a majority of voters within an election timeout.
func (l *leader) heardOf(voters []consensus.MemberID) bool {
	var heard []uint64
	for _, id := range voters {
		heard = append(heard, l.heardOne(id))
	}
	return quorum.Reached(heard) == 1
}

func (l *leader) heardOne(id consensus.MemberID) uint64 {
	if id == l.opts.ID {
		return 1
	}
	if p := l.peer(id); p != nil && l.clock.now-p.HeardAt < uint64(l.opts.ElectionTicks) {
		return 1
	}
	return 0
}

// noteHeard notes that a peer is active, and returns it; nil if this member does not lead, or does not replicate to it.
func (r *Replica) noteHeard(id consensus.MemberID) *progress.Peer {
	p := r.fed(id)
	if p == nil || p.Denied {
		return nil
	}
	p.Heard, p.HeardAt, p.Broken = true, r.clock.now, false
	return p
}

// fed returns the leader's peer with an id; nil if this member does not lead, or does not replicate to it.
func (r *Replica) fed(id consensus.MemberID) *progress.Peer {
	if r.lead == nil {
		return nil
	}
	return r.lead.peer(id)
}

// unreachable notes that the connection to a member broke.
func (l *leader) unreachable(id consensus.MemberID) {
	if p := l.peer(id); p != nil {
		p.Broken = true
		if p.State == progress.Replicate {
			l.probe(p) // messages on their way may be lost
		}
	}
}

// ableToLead lists the other voters that are not cordoned and could lead at once.
func (l *leader) ableToLead() []*progress.Peer {
	var able []*progress.Peer
	for _, p := range l.peers {
		if slices.Contains(l.configs.Config().Voters, p.ID) && !l.cordoned(p.ID) && l.active(p) && l.caughtUp(p) {
			able = append(able, p)
		}
	}
	return able
}

// bestVoter returns the active voter, other than this one, that has most of the log. It returns a cordoned one only if no other
// voter could lead at once.
func (l *leader) bestVoter() *progress.Peer {
	peers := l.peers
	if l.anyCordoned() {
		if able := l.ableToLead(); len(able) > 0 {
			peers = able
		}
	}
	var best *progress.Peer
	for _, p := range peers {
		if !slices.Contains(l.configs.Config().Voters, p.ID) || !l.active(p) {
			continue
		}
		if best == nil || p.Match > best.Match {
			best = p
		}
	}
	return best
}

// successor returns the voter to hand over to; nil unless this leader streams entries to it.
func (l *leader) successor() *progress.Peer {
	if p := l.bestVoter(); p != nil && p.State == progress.Replicate {
		return p
	}
	return nil
}

// keepsFor reports whether the log keeps the entries after a snapshot on its way to a member.
func (l *leader) keepsFor(p *progress.Peer) bool {
	return p.State == progress.Snapshot && !p.Outrun
}

// oldestSnapshot returns the member whose snapshot makes this log keep the most entries, or nil.
func (l *leader) oldestSnapshot() *progress.Peer {
	var oldest *progress.Peer
	for _, p := range l.peers {
		if l.keepsFor(p) && (oldest == nil || p.Floor < oldest.Floor) {
			oldest = p
		}
	}
	return oldest
}
