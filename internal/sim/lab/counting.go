package lab

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Count is a quorum while it is counted: by a candidate, by a leader for the next entry, or by the proposer of a write on the
// fast path. It is complete once every set has as many as it needs.
type Count struct {
	About string     `json:"about"` // "votes", "elected" (until an entry of the term has committed), "commit" or "fast"
	Text  string     `json:"text"`  // "votes for term 3"
	Sets  []CountSet `json:"sets"`
}

// CountSet is one set of members of which some number is needed.
type CountSet struct {
	Members []memberID `json:"members"`
	Have    []memberID `json:"have"`
	Refused []memberID `json:"refused,omitempty"`
	Need    int        `json:"need"`
	StandIn memberID   `json:"stand_in,omitempty"` // for whom a leader that is no voter counts itself, with that rule dropped
}

// complete reports whether the quorum is there.
func (c *Count) complete() bool {
	return !slices.ContainsFunc(c.Sets, func(s CountSet) bool { return len(s.Have) < s.Need })
}

// tallied are answers that a member has heard, as a recorder keeps them.
type tallied struct {
	granted  []memberID
	refused  []memberID
	elected  Count                          // that made it leader
	verdicts map[uint64]map[memberID]uint64 // of own writes: the revision that a member gave; zero: it refused
}

// hears notes an answer that m gets while it counts.
func (t *tallied) hears(m *member, msg *message) {
	switch msg.Kind {
	case consensus.MsgPreVoteReply, consensus.MsgVoteReply:
		pre := msg.Kind == consensus.MsgPreVoteReply
		if pre != (m.status.Role == raft.PreCandidate) || !pre && msg.Term != m.status.Term {
			return // of an earlier campaign
		}
		if to := &t.granted; !msg.Reject && !slices.Contains(*to, msg.From) {
			*to = append(*to, msg.From)
		}
		if to := &t.refused; msg.Reject && !slices.Contains(*to, msg.From) {
			*to = append(*to, msg.From)
		}
	case consensus.MsgRecorded, consensus.MsgFast:
		for i := range msg.Verdicts {
			v := &msg.Verdicts[i]
			number := v.Proposal.Sequence
			if v.Proposal.Session != clientSession || !m.waiting[number] {
				continue
			}
			if t.verdicts == nil {
				t.verdicts = map[uint64]map[memberID]uint64{}
			}
			if t.verdicts[number] == nil {
				t.verdicts[number] = map[memberID]uint64{}
			}
			t.verdicts[number][msg.From] = v.Revision
		}
	}
}

// follow begins a new count where a member begins a new campaign, and keeps the one that it won. The status of m is still that
// of before the step, for a leader may change the configuration as it begins.
func (t *tallied) follow(m *member, events []raft.Event) {
	for _, e := range events {
		switch e := e.(type) {
		case raft.BecamePreCandidate, raft.BecameCandidate:
			t.granted, t.refused = []memberID{m.id}, nil
		case raft.BecameLeader:
			t.elected = m.votes(fmt.Sprintf("votes for %v in term %d", m.id, e.Term))
			t.elected.About = "elected"
		}
	}
}

// counts returns the quorums that a member counts now.
func (m *member) counts() []Count {
	if !m.running() {
		return nil
	}
	var all []Count
	in := &m.status
	switch {
	case in.Role == raft.PreCandidate:
		all = append(all, m.votes(fmt.Sprintf("would vote for %v", m.id)))
	case in.Role == raft.Candidate:
		all = append(all, m.votes(fmt.Sprintf("votes for %v in term %d", m.id, in.Term)))
	case in.Role == raft.Leader:
		if !in.TermStarted && len(m.tallied.elected.Sets) > 0 {
			all = append(all, m.tallied.elected)
		}
		if e, ok := m.counted(); ok {
			all = append(all, m.acknowledged(&e))
		}
	}
	return append(all, m.offered()...)
}

// setsOf returns the sets of members that are counted by the configuration in force: of a joint one both, unless a dropped
// rule says otherwise (package configs).
func (m *member) setsOf(election bool) [][]memberID {
	c, dropped := &m.status.Config, &m.w.broken.dropped
	voters := slices.Clone(c.Voters)
	if !election && dropped[rules.CountLearners] {
		voters = append(voters, c.Learners...)
	}
	switch {
	case dropped[rules.UnionOfJoint]:
		for _, id := range c.Outgoing {
			if !slices.Contains(voters, id) {
				voters = append(voters, id)
			}
		}
		slices.Sort(voters)
	case c.IsJoint() && (election || !dropped[rules.IncomingDecides]):
		return [][]memberID{slices.Clone(c.Outgoing), voters}
	}
	return [][]memberID{voters}
}

func setOf(members []memberID, have func(memberID) bool) CountSet {
	s := CountSet{Members: members, Need: quorum.Majority(len(members)), Have: []memberID{}}
	for _, id := range members {
		if have(id) {
			s.Have = append(s.Have, id)
		}
	}
	return s
}

func (m *member) votes(text string) Count {
	c := Count{About: "votes", Text: text}
	for _, members := range m.setsOf(true) {
		s := setOf(members, func(id memberID) bool { return slices.Contains(m.tallied.granted, id) })
		for _, id := range members {
			if slices.Contains(m.tallied.refused, id) {
				s.Refused = append(s.Refused, id)
			}
		}
		c.Sets = append(c.Sets, s)
	}
	return c
}

// counted returns the entry that a leader needs a quorum for: the next one of its own term.
func (m *member) counted() (entry, bool) {
	for index := m.status.Commit + 1; ; index++ {
		e, ok := m.at(index)
		if !ok || e.Term == m.status.Term || m.w.broken.dropped[rules.CommitOldTerm] {
			return e, ok
		}
	}
}

func (m *member) acknowledged(e *entry) Count {
	c := Count{About: "commit", Text: fmt.Sprintf("entry %d (%s) on disk", e.Index, m.w.names.word(e))}
	for _, members := range m.setsOf(false) {
		s := setOf(members, func(id memberID) bool { return m.matches(id) >= e.Index })
		if slices.Contains(members, m.standIn) {
			s.StandIn = m.standIn
		}
		c.Sets = append(c.Sets, s)
	}
	return c
}

// matches returns up to which index a leader knows a member's disk to hold its log.
func (m *member) matches(id memberID) consensus.Index {
	if id == m.id {
		return m.status.Durable
	}
	for i := range m.status.Progress {
		if p := &m.status.Progress[i]; p.ID == id {
			return p.Match
		}
	}
	return 0
}

// maxOffered is how many writes of the fast path are shown at once.
const maxOffered = 3

// offered returns the counts of writes that m offered, and whose clients wait: of the members that gave the revision which
// most of them gave.
func (m *member) offered() []Count {
	var all []Count
	for _, number := range slices.Sorted(maps.Keys(m.tallied.verdicts)) {
		if !m.waiting[number] {
			delete(m.tallied.verdicts, number)
			continue
		}
		given := m.tallied.verdicts[number]
		best, most := uint64(0), 0
		times := map[uint64]int{}
		for _, id := range slices.Sorted(maps.Keys(given)) {
			revision := given[id]
			if times[revision]++; revision > 0 && times[revision] > most {
				best, most = revision, times[revision]
			}
		}
		voters := slices.Clone(m.status.Config.Voters)
		s := setOf(voters, func(id memberID) bool { return best > 0 && given[id] == best })
		s.Need = quorum.Super(len(voters))
		for _, id := range voters {
			if revision, told := given[id]; told && revision != best {
				s.Refused = append(s.Refused, id)
			}
		}
		all = append(all, Count{About: "fast", Text: fmt.Sprintf("w%d on the fast path", number), Sets: []CountSet{s}})
		if len(all) == maxOffered {
			break
		}
	}
	return all
}
