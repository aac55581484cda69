package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// The inferred commit. A member that proposed an entry need not wait for the leader to say that it committed: it counts
// the acknowledgements itself. Every voter that acknowledges the entry to the leader sends the same to its proposer, and the
// leader says how far its own disk is. With three voters the leader's word and the proposer's own disk are a majority: one
// round trip. It is Raft's own rule, counted elsewhere: an entry of the current term, durable on a majority of each set
// of voters, is committed, and so is all before it.
//
// It counts by the configuration of this member's log. Should the leader's log have gone on to another one, that one
// was appended only after this one had committed, and any two majorities of neighbours meet. While a change is not
// applied here, or is joint, nothing is inferred.

// inference is how far each voter's log is known to equal the leader's, and up to where this member has reported its own.
type inference struct {
	opts     *Options
	log      *raftlog.Log
	configs  *configs.History
	hard     *hardState
	soft     *softState
	out      *outbox
	journal  *journal
	peers    *peerSet
	forwards *forwards

	logs     progress.Matches // of the leader and of voters, as they reported in this term
	telling  []consensus.MemberID
	reported consensus.Index // to proposers, of this member's log
	count    uint64          // entries of this member that it found committed before the leader said so
}

// reportMatch reports to the proposers of entries what is acknowledged to the leader, up to known, and was not before.
func (s *inference) reportMatch(known consensus.Index, after bool) {
	from := max(s.reported, s.log.Commit()) + 1
	if from > known {
		return
	}
	s.reported = known
	if !s.configs.Votes() {
		return
	}
	var last consensus.MemberID // they come in runs
	entries := s.log.Slice(from, known)
	for i := range entries {
		proposer := entries[i].Proposer
		if proposer == last || proposer == consensus.NoMember || proposer == s.opts.ID || proposer == s.soft.leader ||
			entries[i].Term != s.hard.term || !s.configs.Config().IsVoter(proposer) {
			continue
		}
		last = proposer
		if !slices.Contains(s.telling, proposer) {
			s.telling = append(s.telling, proposer)
		}
	}
	for _, id := range s.telling {
		s.out.send(consensus.Message{Kind: consensus.MsgAcknowledged, To: id, Match: s.log.PositionAt(known)}, after)
	}
	s.telling = s.telling[:0]
}

// note notes what another member, or the leader, has durably in this term.
func (s *inference) note(id consensus.MemberID, index consensus.Index) {
	if s.soft.role == Follower && index > 0 {
		s.logs.Note(id, index)
	}
}

// logOf is how far a member is known to have the leader's log.
func (s *inference) logOf(id consensus.MemberID) uint64 {
	if id == s.opts.ID {
		return uint64(min(s.log.Durable(), s.soft.matched))
	}
	return uint64(s.logs.Of(id))
}

// commit commits what a majority is known to have.
func (s *inference) commit() {
	if s.logs.Len() == 0 || s.soft.matched <= s.log.Commit() || !s.configs.Stable() {
		return
	}
	index := min(consensus.Index(s.peers.reached(s.logOf)), s.soft.matched)
	if term, ok := s.log.Term(index); !ok || index <= s.log.Commit() || (term != s.hard.term && !s.opts.Faults.InferOldTerm) {
		return
	}
	own := uint64(0)
	entries := s.log.Slice(s.log.Commit()+1, index)
	for i := range entries {
		if entries[i].Proposer == s.opts.ID {
			own++
		}
	}
	if own > 0 || len(s.forwards.forwarded) > 0 { // else nobody waits here, and the leader's word brings larger batches
		s.count += own
		s.out.Inferred = &[2]consensus.Index{s.log.Commit(), index}
		s.journal.commitTo(index)
	}
}

// reset begins a term.
func (s *inference) reset() {
	s.logs.Clear()
	s.reported = 0
}
