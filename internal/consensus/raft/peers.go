package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/consensus/reconfig"
)

// A learner may be promoted if at most so many entries, and one append's worth of bytes, are missing to the leader's
// last entry: about what a busy heartbeat interval brings. A ratio of indexes would say nothing about time.
const caughtUpEntries = 1000

// peerSet is what a leader knows of every other member.
type peerSet struct {
	opts    *Options
	clock   *clock
	log     *raftlog.Log
	configs *configs.History
	soft    *softState
	cordon  *configs.Cordon

	list []*progress.Peer // sorted by id
}

// reset forgets all members.
func (s *peerSet) reset() { s.list = s.list[:0] }

// sync makes the leader's view of the others fit the configurations.
func (s *peerSet) sync() {
	for _, id := range s.configs.Recipients() {
		s.add(id)
	}
	for _, p := range s.list {
		p.Leaving = !s.configs.Config().Contains(p.ID)
	}
}

// addRemoved makes a new leader feed, for a while, those whom the last change removed: a leader that removed itself has yet to
// learn how what it was asked for ended.
func (s *peerSet) addRemoved() {
	for _, id := range s.configs.Last().Tombs {
		if p := s.add(id); p != nil {
			p.Leaving, p.LeavesAt = true, s.clock.now+uint64(s.opts.ElectionTicks)
		}
	}
}

// add returns what it added; nil if id is known already.
func (s *peerSet) add(id consensus.MemberID) *progress.Peer {
	if id == s.opts.ID || s.find(id) != nil {
		return nil
	}
	p := progress.New(id, s.log.Last()+1, s.opts.MaxInflightMessages, s.opts.MaxInflightBytes)
	p.HeardAt = s.clock.now // the benefit of the doubt, for one election timeout
	at := 0
	for at < len(s.list) && s.list[at].ID < id {
		at++
	}
	s.list = slices.Insert(s.list, at, p)
	return p
}

// forgetLeavers drops members whose removal was settled some time ago. One that still does not know learns it from the
// answer to its pre-vote.
func (s *peerSet) forgetLeavers() {
	for i := 0; i < len(s.list); {
		if p := s.list[i]; p.Leaving && p.LeavesAt > 0 && s.clock.now >= p.LeavesAt {
			s.list = slices.Delete(s.list, i, i+1)
			continue
		}
		i++
	}
}

func (s *peerSet) facts() reconfig.Facts {
	facts := reconfig.Facts{
		Active:      []consensus.MemberID{s.opts.ID},
		CaughtUp:    []consensus.MemberID{s.opts.ID},
		Tombstones:  s.configs.Tombstones(),
		MaxLearners: s.opts.MaxLearners,
		Strict:      s.opts.StrictReconfig,
	}
	for _, p := range s.list {
		if !s.active(p) {
			continue
		}
		facts.Active = append(facts.Active, p.ID)
		if s.caughtUp(p) {
			facts.CaughtUp = append(facts.CaughtUp, p.ID)
		}
	}
	return facts
}

// caughtUp reports whether a member follows the log and has nearly all of it: all that has committed, however much is on
// its way, or all but about one heartbeat's worth.
func (s *peerSet) caughtUp(p *progress.Peer) bool {
	if p.State != progress.Replicate {
		return false
	}
	near := s.log.Last()-p.Match <= caughtUpEntries && s.log.SizeAfter(p.Match) <= s.opts.MaxMessageBytes
	return near || (p.Match >= s.log.Commit() && s.log.Commit() >= s.soft.noop)
}

func (s *peerSet) find(id consensus.MemberID) *progress.Peer {
	for _, p := range s.list {
		if p.ID == id {
			return p
		}
	}
	return nil
}

func (s *peerSet) active(p *progress.Peer) bool {
	return p.Heard && !p.Broken && !p.Denied && s.clock.now-p.HeardAt < uint64(s.opts.ElectionTicks)
}

// matchOf is how far a member's log is durable and equal to the leader's. The leader's own disk counts like another's.
func (s *peerSet) matchOf(id consensus.MemberID) uint64 {
	if id == s.opts.ID {
		if s.opts.Faults.AckBeforeDurable {
			return uint64(s.log.Last())
		}
		return uint64(s.log.Durable())
	}
	if p := s.find(id); p != nil && !p.Denied {
		return uint64(p.Match)
	}
	return 0
}

// reached returns what a majority, of each set of voters, has reached.
func (s *peerSet) reached(reached func(consensus.MemberID) uint64) uint64 {
	return s.configs.Reached(reached, s.opts.Faults.CountSelf && s.soft.role == Leader)
}

// quorumHeard reports whether the leader heard a majority within an election timeout (Raft thesis, section 6.2). While it
// can take back the joint configuration that it is in, the outgoing voters are enough: nobody is elected without them,
// and nobody but this leader can abort the change if it is the incoming ones that died.
func (s *peerSet) quorumHeard() bool {
	if s.reached(s.heardLately) == 1 {
		return true
	}
	if s.log.Commit() < s.soft.noop || s.configs.MayAbort() != consensus.ReasonNone || s.configs.Last() != s.configs.InForce() {
		return false
	}
	return s.heardOf(s.configs.Config().Outgoing)
}

// heardOf reports whether a majority of voters was heard within an election timeout.
func (s *peerSet) heardOf(voters []consensus.MemberID) bool {
	var heard []uint64
	for _, id := range voters {
		heard = append(heard, s.heardLately(id))
	}
	return quorum.Reached(heard) == 1
}

func (s *peerSet) heardLately(id consensus.MemberID) uint64 {
	if id == s.opts.ID {
		return 1
	}
	if p := s.find(id); p != nil && s.clock.now-p.HeardAt < uint64(s.opts.ElectionTicks) {
		return 1
	}
	return 0
}

// heard notes, on a leader, a sign of life.
func (s *peerSet) heard(m *consensus.Message) *progress.Peer {
	if s.soft.role != Leader {
		return nil
	}
	p := s.find(m.From)
	if p != nil && p.Denied {
		return nil
	}
	if p != nil {
		p.Heard, p.HeardAt, p.Broken = true, s.clock.now, false
	}
	return p
}

// ableToLead lists the other voters that are not cordoned and could lead at once.
func (s *peerSet) ableToLead() []*progress.Peer {
	var able []*progress.Peer
	for _, p := range s.list {
		if slices.Contains(s.configs.Config().Voters, p.ID) && !s.cordon.Covers(p.ID) && s.active(p) && s.caughtUp(p) {
			able = append(able, p)
		}
	}
	return able
}

// bestVoter returns the voter, other than this one, that has most of the log and was heard lately. A cordoned one is taken
// only if no other could lead at once.
func (s *peerSet) bestVoter() *progress.Peer {
	peers := s.list
	if s.cordon.Any() {
		if able := s.ableToLead(); len(able) > 0 {
			peers = able
		}
	}
	var best *progress.Peer
	for _, p := range peers {
		if !slices.Contains(s.configs.Config().Voters, p.ID) || !s.active(p) {
			continue
		}
		if best == nil || p.Match > best.Match {
			best = p
		}
	}
	return best
}

// successor returns the voter to hand over to, if its log is fed.
func (s *peerSet) successor() *progress.Peer {
	if p := s.bestVoter(); p != nil && p.State == progress.Replicate {
		return p
	}
	return nil
}

// keepsFor reports whether the log keeps what follows a snapshot on its way to a member.
func (s *peerSet) keepsFor(p *progress.Peer) bool {
	return s.soft.role == Leader && p.State == progress.Snapshot && !p.Outrun
}

// oldestSnapshot returns the member whose snapshot makes this log keep most, or nil.
func (s *peerSet) oldestSnapshot() *progress.Peer {
	var oldest *progress.Peer
	for _, p := range s.list {
		if s.keepsFor(p) && (oldest == nil || p.Floor < oldest.Floor) {
			oldest = p
		}
	}
	return oldest
}
