package model

import (
	"fmt"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// leave ends a candidacy or a leadership.
func (x *member) leave() {
	x.Role, x.Votes, x.Held = Follower, 0, [MaxMembers]uint16{}
	x.Forced, x.Heir, x.Echoes, x.RoundAt, x.LeaseUntil, x.LeaseBarred = false, -1, 0, 0, 0, false
}

// follow makes a member a follower in a term, if that is not an earlier one.
func (x *member) follow(term int8) {
	if x.Term < term {
		x.Term, x.Voted = term, -1
	}
	if x.Role != Follower {
		x.leave()
	}
}

// open reports whether a leader has committed an entry of its own term.
func (x *member) open() bool {
	return x.Role == Leader && x.Commit > 0 && x.Log.At(x.Commit).Term == x.Term
}

func (m *Model) campaign(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	if x.Role == Leader || m.leases.promised(s, x) {
		return false, ""
	}
	return m.stand(s, a.A), ""
}

// stand makes a member a candidate in the next term.
func (m *Model) stand(s *State, i int8) bool {
	x := &s.M[i]
	last := m.Scenario.MaxTerm
	if s.Recovered {
		last = MaxTerm
	}
	if x.Term == 0 || x.Term >= last || !m.voter(x, i) {
		return false
	}
	x.Term++
	x.Voted, x.Role, x.Forced = i, Candidate, false
	x.Votes = Bit(i)
	x.Held = [MaxMembers]uint16{}
	x.Held[i] = m.held(i, x)
	return true
}

// held is the set of attempts that a vote carries: the pool, and the voter's own fast answers that it has not applied.
func (m *Model) held(i int8, x *member) uint16 {
	if m.Rules[rules.VoteWithout] {
		return 0
	}
	h := x.Pool
	if m.Rules[rules.VoteWithoutLog] {
		return h
	}
	for k := x.Applied; k < x.Log.N; k++ {
		e := &x.Log.E[k]
		if e.Kind == exactEntry && e.Attempt >= 0 && (e.By == i || m.Rules[rules.VoteCarriesAll]) {
			h |= 1 << uint(e.Attempt)
		}
	}
	return h
}

func (m *Model) vote(s *State, a Action) (bool, string) {
	v, c := &s.M[a.A], &s.M[a.B]
	if a.A == a.B || c.Role != Candidate || v.Term > c.Term || v.Term == c.Term && v.Voted >= 0 {
		return false, ""
	}
	if !c.Forced && m.leases.promised(s, v) {
		return false, ""
	}
	upToDate := c.Log.lastTerm() > v.Log.lastTerm() || c.Log.lastTerm() == v.Log.lastTerm() && c.Log.N >= v.Log.N
	if v.Term == c.Term && (!upToDate || v.Role != Follower) {
		return false, ""
	}
	if v.Term < c.Term {
		v.follow(c.Term)
		v.Voted = -1
	}
	m.learn(v, c)
	m.learn(c, v)
	if upToDate {
		v.Voted = a.B
		c.Votes |= Bit(a.A)
		c.Held[a.A] = m.held(a.A, v)
	}
	return true, ""
}

// preVote asks for a vote before any term changes: it changes only the commit index of the member that is asked.
func (m *Model) preVote(s *State, a Action) (bool, string) {
	x, y := &s.M[a.A], &s.M[a.B]
	if a.A == a.B || x.Role == Leader || x.Term == 0 || y.Term == 0 {
		return false, ""
	}
	return m.learn(y, x), ""
}

// learn takes over another member's commit index, if its own log has the same entry there.
func (m *Model) learn(x, from *member) bool {
	at := from.Commit
	if at <= x.Commit || at > x.Log.N || !m.Rules[rules.HintUnchecked] && !x.Log.matches(at, from.Log.At(at).Term) {
		return false
	}
	x.Commit = at
	return true
}

// recovered is an attempt that a new leader takes over.
type recovered struct{ proposal, revision, payload, slot int8 }

// win makes a candidate leader: it recovers records, ascending by revision, and then appends its no-op.
func (m *Model) win(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	at, id := m.Config(&x.Log)
	if x.Role != Candidate || a.M&^x.Votes != 0 || !Has(a.M, a.A) || !m.Quorum(at, a.M) || x.Log.N >= maxLog-5 {
		return false, ""
	}
	if s.LeaderOf[x.Term] >= 0 {
		return true, fmt.Sprintf("election safety: two leaders in term %d", x.Term)
	}
	list := m.heldByEnough(s, x, a.M, m.Scenario.Configs[at], id)
	m.order(list, a.C == 1)
	x.Role = Leader
	x.Votes, x.Held, x.Heir = 0, [MaxMembers]uint16{}, -1
	s.LeaderOf[x.Term] = a.A
	noop := plainEntry(noopEntry, 0, x.Term)
	if m.Rules[rules.RecoverAfterNoop] {
		m.appendOwn(s, a.A, noop)
	}
	for _, r := range list {
		if x.Log.N < maxLog-2 {
			e := plainEntry(exactEntry, r.proposal, x.Term)
			e.Revision, e.Attempt, e.Payload = r.revision, r.slot, r.payload
			m.appendOwn(s, a.A, e)
		}
	}
	if !m.Rules[rules.RecoverAfterNoop] {
		m.appendOwn(s, a.A, noop)
	}
	for t := int8(1); t < x.Term; t++ {
		if n := s.TermCommit[t]; n > 0 && x.Log.shared(&s.TermLog[t]) < n {
			return true, fmt.Sprintf("leader completeness: the leader of term %d lacks an entry committed in term %d",
				x.Term, t)
		}
	}
	return true, ""
}

// heldByEnough returns the attempts that enough of the voters in votes hold and that the log does not decide.
func (m *Model) heldByEnough(s *State, x *member, votes uint8, c Config, id configID) (list []recovered) {
	for j := range int8(MaxAttempts) {
		t := &s.A[j]
		if !t.Used || t.Revision == 0 || !m.Rules[rules.RecoverAnyConfig] && t.ID != id {
			continue
		}
		same := func(proposal, revision, payload int8) bool {
			return proposal == t.Proposal && (m.Rules[rules.RecoverByID] ||
				revision == t.Revision && (payload == t.Payload || m.Rules[rules.RecoverAnyPayload]))
		}
		again := false
		for _, r := range list {
			again = again || same(r.proposal, r.revision, r.payload)
		}
		if again {
			continue
		}
		var holders uint8
		low, payload := t.Revision, t.Payload
		for v := range int8(m.Scenario.Members) {
			for k := range MaxAttempts {
				o := &s.A[k]
				held := Has(votes, v) && x.Held[v]>>k&1 == 1 && (m.Rules[rules.RecoverAnyConfig] || o.ID == id)
				if held && same(o.Proposal, o.Revision, o.Payload) {
					if holders == 0 {
						payload = o.Payload // payload of the first ballot
					}
					holders |= Bit(v)
					low = min(low, o.Revision)
				}
			}
		}
		if m.recoverable(c, holders) && !m.decidedInLog(&x.Log, t, low) {
			list = append(list, recovered{t.Proposal, low, payload, j})
		}
	}
	return list
}

// decidedInLog reports whether a log has a slow entry or an abort of the proposal, or an entry of the attempt.
func (m *Model) decidedInLog(l *journal, t *attempt, revision int8) bool {
	for i := range l.N {
		e := &l.E[i]
		if e.Kind == noopEntry || e.Kind == ConfigEntry || e.Proposal != t.Proposal {
			continue
		}
		same := e.Revision == revision && (e.Payload == t.Payload || m.Rules[rules.RecoverLoggedAnyPayload])
		if e.Kind != exactEntry || same || m.Rules[rules.RecoverLoggedByID] {
			return true
		}
	}
	return false
}

// order sorts by ascending revision, with ties in either order.
func (m *Model) order(list []recovered, tiesTurned bool) {
	for i := range list {
		for k := i; k > 0; k-- {
			before, after := list[k-1], list[k]
			swap := after.revision < before.revision || after.revision == before.revision && tiesTurned
			if m.Rules[rules.RecoverDescending] {
				swap = after.revision > before.revision
			}
			if !swap {
				break
			}
			list[k-1], list[k] = after, before
		}
	}
}
