package model

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// reads are the linearizable reads, one at a time.
type reads struct {
	electorate
	leases *leases
	laws   *laws
}

// ask begins a read at any member that knows a leader, or is one.
func (m *reads) ask(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	given := s.R.Stage != NoRead && s.M[s.R.Reader].Term == s.R.Term // else its reader has given it up
	if given || s.Reads >= 3 || s.Reported == 0 || x.Term == 0 || x.Role == Candidate || s.LeaderOf[x.Term] < 0 {
		return false, ""
	}
	if x.Role != Leader && s.LeaderOf[x.Term] == a.A {
		return false, ""
	}
	s.Reads++
	r := Read{Stage: ReadAsked, Reader: a.A, Term: x.Term, Leader: s.LeaderOf[x.Term], Must: s.Reported, Floor: s.highest()}
	if m.rules[rules.CountOldAnswers] {
		r.Told, r.ToldTerm, r.ToldLast, r.ToldID, r.ToldAll = s.R.Told, s.R.ToldTerm, s.R.ToldLast, s.R.ToldID, s.R.ToldAll
	}
	if m.rules[rules.ReadOldEnds] {
		r.Ended, r.Ends = s.R.Ended, s.R.Ends
	}
	s.R = r
	return true, ""
}

// take lets the leader take its last index as the read index; later echoes may lower it. The reader itself confirms the leader,
// unless its term is later.
func (m *reads) take(s *State, a Action) (bool, string) {
	r := &s.R
	if r.Stage != ReadAsked || r.LeaderTerm != 0 {
		return false, ""
	}
	l := &s.M[r.Leader]
	if l.Role != Leader {
		return false, ""
	}
	r.LeaderTerm, r.Index, r.LastTerm = l.Term, l.Log.N, l.Log.lastTerm()
	if m.rules[rules.ReadCommitIndex] {
		r.Index = l.Commit
	}
	r.Low = max(l.Commit, l.Log.noop(l.Term))
	if m.rules[rules.ReadBelowNoop] {
		r.Low = 0
	}
	_, r.Under = m.Config(&l.Log)
	r.Fixed = !m.stable(l) && !m.rules[rules.ReadWhileChanging]
	if r.Fixed {
		r.Under = configID{}
	}
	r.Echoes = Bit(r.Leader)
	if r.Term <= l.Term || m.rules[rules.ReadAnyAsker] {
		r.Echoes |= Bit(r.Reader)
	}
	r.Sure = m.rules[rules.SkipReadRound] || m.leases.hold(s, l)
	return true, ""
}

// hand lets the leader send the index to the reader, once the leader is confirmed and the index committed in its term.
func (m *reads) hand(s *State, a Action) (bool, string) {
	r := &s.R
	l := &s.M[r.Leader]
	if r.Stage != ReadAsked || r.LeaderTerm == 0 || l.Role != Leader || l.Term != r.LeaderTerm ||
		s.M[r.Reader].Term != r.Term {
		return false, ""
	}
	at, _ := m.Config(&l.Log)
	if !r.Sure && !m.Quorum(at, r.Echoes) || !m.rules[rules.ReadUncommitted] && (l.Commit < r.Index || !l.open()) {
		return false, ""
	}
	r.Stage = readReady
	return true, ""
}

// narrow lowers the index to the largest one that a majority may have on disk, by the echoes that came since the read began: a
// member without an echo may have any entry. Entries that the leader answered before the commit are not cut off, because other
// members may hold them as records.
func (m *reads) narrow(s *State, l *member, leader int8) {
	r := &s.R
	at, id := m.Config(&l.Log)
	if r.Fixed || id != r.Under || !m.stable(l) && !m.rules[rules.ReadWhileChanging] {
		return
	}
	end := int8(maxLog)
	for _, set := range []uint8{m.configs[at].Old, m.configs[at].New} {
		if set != 0 {
			end = min(end, m.mayHave(r, set, leader, l.Log.N))
		}
	}
	for i := range l.Log.N {
		if e := &l.Log.E[i]; e.Kind == exactEntry && e.By == leader && !m.rules[rules.ReadForgetsAnswers] {
			end = max(end, i+1)
		}
	}
	r.Index = min(r.Index, max(end, r.Low))
}

// mayHave returns the largest index of a leader's log that a majority of some voters may have on disk.
func (m *reads) mayHave(r *Read, set uint8, leader, own int8) int8 {
	var ends []int8
	for i := range int8(MaxMembers) {
		switch {
		case !Has(set, i):
		case i == leader:
			ends = append(ends, own)
		case Has(r.Ended, i):
			ends = append(ends, r.Ends[i])
		default:
			ends = append(ends, maxLog)
		}
	}
	slices.Sort(ends)
	return ends[len(ends)-quorum.Majority(len(ends))]
}

// word gives the reader the leader's index before it is confirmed.
func (m *reads) word(s *State, _ Action) (bool, string) {
	r := &s.R
	x := &s.M[r.Reader]
	if r.Stage != ReadAsked || r.LeaderTerm == 0 || r.Given ||
		x.Role != Follower || x.Term != r.Term || x.Term != r.LeaderTerm {
		return false, ""
	}
	_, own := m.Config(&x.Log)
	_, theirs := m.Config(&s.TermLog[r.LeaderTerm])
	if own != theirs || !m.stable(x) || !m.rules[rules.ReadLeaderIndex] && !m.rules[rules.ReadChecked] {
		return false, ""
	}
	r.Given = true
	return true, ""
}

// tell is a voter's answer to the reader: its term, the end of its log, and whether it holds nothing outside the log.
func (m *reads) tell(s *State, a Action) (bool, string) {
	r, v := &s.R, &s.M[a.A]
	if r.Stage != ReadAsked || a.A == r.Reader || Has(r.Told, a.A) || v.Term == 0 {
		return false, ""
	}
	r.Told |= Bit(a.A)
	_, id := m.Config(&v.Log)
	r.ToldTerm[a.A], r.ToldLast[a.A], r.ToldID[a.A] = v.Term, v.Log.N, id
	if m.knowsAll(v, a.A) {
		r.ToldAll |= Bit(a.A)
	}
	return true, ""
}

// knowsAll reports whether every answered write that the member knows of is in its log.
func (m *reads) knowsAll(x *member, i int8) bool {
	return (x.Pool == 0 || m.rules[rules.ReadPastPool]) && m.stable(x) && m.voter(x, i)
}

// confirm lets the reader confirm the read without the leader.
func (m *reads) confirm(s *State, a Action) (bool, string) {
	r := &s.R
	x := &s.M[r.Reader]
	if r.Stage != ReadAsked || x.Term != r.Term || x.Role != Follower {
		return false, ""
	}
	if a.B == 2 {
		return m.confirmByMajority(s), ""
	}
	if !r.Given || x.Commit < r.Index || m.rules[rules.ReadChecked] && !x.Log.matches(r.Index, r.LastTerm) {
		return false, ""
	}
	in := Bit(r.Reader) | Bit(r.Leader)
	for i := range int8(m.laws.members) {
		if Has(r.Told, i) && r.ToldTerm[i] <= x.Term {
			in |= Bit(i)
		}
	}
	if at, _ := m.Config(&x.Log); !m.Quorum(at, in) {
		return false, ""
	}
	r.Stage = readReady
	return true, ""
}

// confirmByMajority takes as the index the longest log of a majority whose members, the reader included, hold nothing outside
// their logs.
func (m *reads) confirmByMajority(s *State) bool {
	r := &s.R
	x := &s.M[r.Reader]
	if !m.knowsAll(x, r.Reader) {
		return false
	}
	at, id := m.Config(&x.Log)
	var lasts []int8
	for i := range int8(m.laws.members) {
		same := r.ToldID[i] == id || m.rules[rules.ReadOtherConfig]
		if Has(r.Told&r.ToldAll, i) && r.ToldTerm[i] <= x.Term && m.voter(x, i) && same {
			lasts = append(lasts, r.ToldLast[i])
		}
	}
	slices.Sort(lasts)
	others := quorum.Majority(Count(m.configs[at].Old)) - 1
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

// serve answers the read once the reader has applied up to the index.
func (m *reads) serve(s *State, _ Action) (bool, string) {
	r := &s.R
	x := &s.M[r.Reader]
	if r.Stage != readReady || x.Applied < r.Index {
		return false, ""
	}
	bad := m.laws.checkRead(s, x)
	served := *r
	*r = Read{}
	if m.rules[rules.ReadOldEnds] {
		r.Ended, r.Ends = served.Ended, served.Ends
	}
	return true, bad
}

// echo is a follower's answer to a heartbeat: it confirms the leader for a read, and promises patience.
func (m *reads) echo(s *State, a Action) (bool, string) {
	v, l := &s.M[a.A], &s.M[a.B]
	if a.A == a.B || l.Role != Leader || v.Term > l.Term || v.Term == 0 {
		return false, ""
	}
	confirms := s.R.Stage == ReadAsked && s.R.Leader == a.B && s.R.LeaderTerm == l.Term && !Has(s.R.Echoes, a.A)
	promises := m.leases.on() && !Has(l.Echoes, a.A) && l.Echoes != 0
	if !confirms && !promises && v.Term == l.Term {
		return false, ""
	}
	v.follow(l.Term)
	if confirms {
		s.R.Echoes |= Bit(a.A)
		s.R.Ended |= Bit(a.A)
		s.R.Ends[a.A] = v.Log.N
		m.narrow(s, l, a.B)
	}
	if promises {
		m.leases.promise(s, a.A, a.B)
	}
	return true, ""
}
