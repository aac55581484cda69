package model

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus/quorum"
)

// reads are the linearizable reads, one at a time.
type reads struct {
	electorate
	leases *leases
	laws   *laws
}

// ask begins a read at any member that knows a leader, itself perhaps.
func (m *reads) ask(s *state, a action) (bool, string) {
	x := &s.M[a.A]
	given := s.R.Stage != noRead && s.M[s.R.Reader].Term == s.R.Term // else its reader has given it up
	if given || s.Reads >= 3 || s.Reported == 0 || x.Term == 0 || x.Role == candidate || s.LeaderOf[x.Term] < 0 {
		return false, ""
	}
	if x.Role != leader && s.LeaderOf[x.Term] == a.A {
		return false, ""
	}
	s.Reads++
	r := read{Stage: readAsked, Reader: a.A, Term: x.Term, Leader: s.LeaderOf[x.Term], Must: s.Reported, Floor: s.highest()}
	if m.rules[ReadOldAnswers] {
		r.Told, r.ToldTerm, r.ToldLast, r.ToldID, r.ToldAll = s.R.Told, s.R.ToldTerm, s.R.ToldLast, s.R.ToldID, s.R.ToldAll
	}
	s.R = r
	return true, ""
}

// take is the leader taking the index: its last one. Whoever asks vouches for the leader, unless its term is later.
func (m *reads) take(s *state, a action) (bool, string) {
	r := &s.R
	if r.Stage != readAsked || r.LeaderTerm != 0 {
		return false, ""
	}
	l := &s.M[r.Leader]
	if l.Role != leader {
		return false, ""
	}
	r.LeaderTerm, r.Index, r.LastTerm = l.Term, l.Log.N, l.Log.lastTerm()
	if m.rules[ReadCommitIndex] {
		r.Index = l.Commit
	}
	r.Echoes = bit(r.Leader)
	if r.Term <= l.Term || m.rules[ReadAnyAsker] {
		r.Echoes |= bit(r.Reader)
	}
	r.Sure = m.rules[ReadUnconfirmed] || m.leases.hold(s, l)
	return true, ""
}

// hand is the leader handing out the index, once it is confirmed and committed in its term.
func (m *reads) hand(s *state, a action) (bool, string) {
	r := &s.R
	l := &s.M[r.Leader]
	if r.Stage != readAsked || r.LeaderTerm == 0 || l.Role != leader || l.Term != r.LeaderTerm ||
		s.M[r.Reader].Term != r.Term {
		return false, ""
	}
	at, _ := m.config(&l.Log)
	if !r.Sure && !m.quorum(at, r.Echoes) || !m.rules[ReadUncommitted] && (l.Commit < r.Index || !l.open()) {
		return false, ""
	}
	r.Stage = readReady
	return true, ""
}

// word gives the reader the index before anybody confirmed it.
func (m *reads) word(s *state, _ action) (bool, string) {
	r := &s.R
	x := &s.M[r.Reader]
	if r.Stage != readAsked || r.LeaderTerm == 0 || r.Given ||
		x.Role != follower || x.Term != r.Term || x.Term != r.LeaderTerm {
		return false, ""
	}
	_, own := m.config(&x.Log)
	_, theirs := m.config(&s.TermLog[r.LeaderTerm])
	if own != theirs || !m.stable(x) || !m.rules[ReadUnchecked] && !m.rules[ReadChecked] {
		return false, ""
	}
	r.Given = true
	return true, ""
}

// tell is a voter's answer to the reader: its term, how far its log goes, and whether that is all it knows.
func (m *reads) tell(s *state, a action) (bool, string) {
	r, v := &s.R, &s.M[a.A]
	if r.Stage != readAsked || a.A == r.Reader || has(r.Told, a.A) || v.Term == 0 {
		return false, ""
	}
	r.Told |= bit(a.A)
	_, id := m.config(&v.Log)
	r.ToldTerm[a.A], r.ToldLast[a.A], r.ToldID[a.A] = v.Term, v.Log.N, id
	if m.knowsAll(v, a.A) {
		r.ToldAll |= bit(a.A)
	}
	return true, ""
}

// knowsAll reports whether every write that was answered and that the member knows of is in its log.
func (m *reads) knowsAll(x *member, i int8) bool {
	return (x.Pool == 0 || m.rules[ReadPastPool]) && m.stable(x) && m.voter(x, i)
}

// confirm is the reader confirming by itself.
func (m *reads) confirm(s *state, a action) (bool, string) {
	r := &s.R
	x := &s.M[r.Reader]
	if r.Stage != readAsked || x.Term != r.Term || x.Role != follower {
		return false, ""
	}
	if a.B == 2 {
		return m.confirmByMajority(s), ""
	}
	if !r.Given || x.Commit < r.Index || m.rules[ReadChecked] && !x.Log.matches(r.Index, r.LastTerm) {
		return false, ""
	}
	in := bit(r.Reader) | bit(r.Leader)
	for i := range int8(m.laws.members) {
		if has(r.Told, i) && r.ToldTerm[i] <= x.Term {
			in |= bit(i)
		}
	}
	if at, _ := m.config(&x.Log); !m.quorum(at, in) {
		return false, ""
	}
	r.Stage = readReady
	return true, ""
}

// confirmByMajority takes as index the farthest log of a majority that has nothing but its logs, the reader included.
func (m *reads) confirmByMajority(s *state) bool {
	r := &s.R
	x := &s.M[r.Reader]
	if !m.knowsAll(x, r.Reader) {
		return false
	}
	at, id := m.config(&x.Log)
	var lasts []int8
	for i := range int8(m.laws.members) {
		same := r.ToldID[i] == id || m.rules[ReadOtherConfig]
		if has(r.Told&r.ToldAll, i) && r.ToldTerm[i] <= x.Term && m.voter(x, i) && same {
			lasts = append(lasts, r.ToldLast[i])
		}
	}
	slices.Sort(lasts)
	others := quorum.Majority(count(m.configs[at].Old)) - 1
	if len(lasts) < others || others == 0 {
		return false
	}
	index := max(lasts[others-1], x.Log.N)
	if index > x.Commit {
		return false
	}
	r.Index, r.Stage = index, readReady
	return true
}

// serve answers the read once the reader has applied so far.
func (m *reads) serve(s *state, _ action) (bool, string) {
	r := &s.R
	x := &s.M[r.Reader]
	if r.Stage != readReady || x.Applied < r.Index {
		return false, ""
	}
	bad := m.laws.checkRead(s, x)
	*r = read{}
	return true, bad
}

// echo is a follower's answer to a heartbeat: it confirms the leader for a read, and promises patience.
func (m *reads) echo(s *state, a action) (bool, string) {
	v, l := &s.M[a.A], &s.M[a.B]
	if a.A == a.B || l.Role != leader || v.Term > l.Term || v.Term == 0 {
		return false, ""
	}
	confirms := s.R.Stage == readAsked && s.R.Leader == a.B && s.R.LeaderTerm == l.Term && !has(s.R.Echoes, a.A)
	promises := m.leases.on() && !has(l.Echoes, a.A) && l.Echoes != 0
	if !confirms && !promises && v.Term == l.Term {
		return false, ""
	}
	v.follow(l.Term)
	if confirms {
		s.R.Echoes |= bit(a.A)
	}
	if promises {
		m.leases.promise(s, a.A, a.B)
	}
	return true, ""
}
