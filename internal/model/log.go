package model

import (
	"fmt"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// appendOwn appends an entry to a leader's log, and counts it as durable on the leader at once.
func (m *Model) appendOwn(s *State, i int8, e entry) {
	x := &s.M[i]
	x.Log.add(e)
	s.TermLog[x.Term] = x.Log
	s.Acked[x.Term][i] = x.Log.N
	if m.Rules[rules.ForgetAtAppend] && e.command() {
		m.dropProposal(s, x, e.Proposal)
	}
}

func (m *Model) dropProposal(s *State, x *member, proposal int8) {
	for j := range MaxAttempts {
		if x.Pool>>j&1 == 1 && s.A[j].Proposal == proposal {
			x.Pool &^= 1 << j
		}
	}
}

// receive brings a follower's log in line with that of a leader, up to an index (Raft paper, figure 2). The append begins at
// the first entry: entries that both logs have are skipped, so appends that begin later add nothing.
func (m *Model) receive(s *State, a Action) (bool, string) {
	if s.LeaderOf[a.A] < 0 || s.LeaderOf[a.A] == a.B || a.C > s.TermLog[a.A].N {
		return false, ""
	}
	x, theirs := &s.M[a.B], &s.TermLog[a.A]
	if x.Term > a.A {
		return false, ""
	}
	commit := int8(0)
	if a.D == 1 {
		commit = min(a.C, s.TermCommit[a.A])
	}
	same := x.Log.shared(theirs)
	if x.Term == a.A && x.Role == Follower && a.C <= same && commit <= x.Commit && s.Acked[a.A][a.B] >= a.C {
		return false, "" // the follower has it all
	}
	x.follow(a.A)
	acked := a.C
	if a.C > same && same < x.Commit {
		if !m.Rules[rules.SkipBelowCommit] {
			return true, "" // another entry is committed here: that leader will be deposed
		}
		same = min(x.Commit, a.C)
		acked = max(a.C, x.Commit)
		for same < a.C && x.Log.matches(same+1, theirs.At(same+1).Term) {
			same++
		}
	}
	if m.Rules[rules.SkipBelowCommit] {
		acked = max(acked, x.Commit)
	}
	if a.C > same {
		m.truncate(a.B, x, same)
		for i := same; i < a.C; i++ {
			x.Log.add(theirs.E[i])
			if e := &theirs.E[i]; m.Rules[rules.ForgetAtAppend] && e.command() {
				m.dropProposal(s, x, e.Proposal)
			}
		}
	}
	s.Acked[a.A][a.B] = max(s.Acked[a.A][a.B], acked)
	x.Commit = max(x.Commit, commit)
	return true, ""
}

// truncate drops the entries after an index; those that the member answered as a leader become records in its pool.
func (m *Model) truncate(i int8, x *member, index int8) {
	if !m.Rules[rules.TruncateForgets] {
		m.rescue(i, x, index)
	}
	x.Log.cut(index)
}

func (m *Model) rescue(i int8, x *member, index int8) {
	for k := max(index, x.Applied); k < x.Log.N; k++ {
		e := &x.Log.E[k]
		if e.Kind == exactEntry && e.Attempt >= 0 && (e.By == i || m.Rules[rules.TruncateKeepsAll]) {
			x.Pool |= 1 << uint(e.Attempt)
		}
	}
}

// Holders returns the members that are known to hold the log of a term durably up to an index.
func (s *State) Holders(term, index int8) (in uint8) {
	for i := range int8(MaxMembers) {
		if s.Acked[term][i] >= index {
			in |= Bit(i)
		}
	}
	return in
}

// commit is Raft's rule: an entry of the leader's own term that a majority holds is committed.
func (m *Model) commit(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	if x.Role != Leader || a.C <= x.Commit || a.C > x.Log.N || x.Log.At(a.C).Term != x.Term {
		return false, ""
	}
	at, _ := m.Config(&x.Log)
	if !m.Quorum(at, s.Holders(x.Term, a.C)) {
		return false, ""
	}
	return true, m.committed(s, x, a.C)
}

// infer is the same rule, counted by a follower (ADR 0013).
func (m *Model) infer(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	l := s.LeaderOf[x.Term]
	if x.Role != Follower || l < 0 || l == a.A || a.C <= x.Commit || a.C > s.Acked[x.Term][a.A] || a.C > x.Log.N {
		return false, ""
	}
	if x.Log.At(a.C).Term != x.Term && !m.Rules[rules.InferOldTerm] || !m.stable(x) && !m.Rules[rules.InferUnstable] {
		return false, ""
	}
	at, _ := m.Config(&x.Log)
	if !m.Quorum(at, s.Holders(x.Term, a.C)) {
		return false, ""
	}
	return true, m.committed(s, x, a.C)
}

// committed notes that a member found an index committed in its term, and returns a broken law.
func (m *Model) committed(s *State, x *member, index int8) string {
	x.Commit = index
	s.TermCommit[x.Term] = max(s.TermCommit[x.Term], index)
	n := min(s.Committed.N, index)
	for i := range n {
		if s.Committed.E[i] != x.Log.E[i] {
			return fmt.Sprintf("state machine safety: two entries committed at index %d: %s and %s", i+1,
				&s.Committed.E[i], &x.Log.E[i])
		}
	}
	for i := n; i < index; i++ {
		s.Committed.add(x.Log.E[i])
	}
	return ""
}

func (m *Model) applyUpTo(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	if a.C <= x.Applied || a.C > x.Commit {
		return false, ""
	}
	x.Applied = a.C
	m.forget(s, x)
	return true, ""
}

// forget removes from the pool the records that the applied state has decided.
func (m *Model) forget(s *State, x *member) {
	if x.Pool == 0 {
		return
	}
	st := m.Applied(x)
	for j := range MaxAttempts {
		if x.Pool>>j&1 == 0 {
			continue
		}
		o := &s.A[j]
		skipped := st.Skipped[o.Proposal][o.Payload]>>uint(o.Revision)&1 == 1
		if m.Rules[rules.ForgetAnyPayload] {
			skipped = skipped || st.Skipped[o.Proposal][1-o.Payload]>>uint(o.Revision)&1 == 1
		}
		if m.Rules[rules.ForgetByID] {
			skipped = st.Skipped[o.Proposal] != [2]uint32{}
		}
		if r := &st.Rows[o.Proposal]; r.Done || r.Aborted || skipped {
			x.Pool &^= 1 << j
		}
	}
}

// snapshot replaces a follower's log by the leader's store.
func (m *Model) snapshot(s *State, a Action) (bool, string) {
	from, x := &s.M[a.A], &s.M[a.B]
	far := from.Applied
	if m.Rules[rules.SnapshotTooFar] {
		far = from.Log.N
	}
	if a.A == a.B || from.Role != Leader || x.Term > from.Term || a.C > far || a.C <= x.Commit {
		return false, ""
	}
	x.follow(from.Term)
	if x.Log.matches(a.C, from.Log.At(a.C).Term) {
		x.Commit = a.C
	} else {
		if !m.Rules[rules.SnapshotForgets] {
			m.rescue(a.B, x, 0)
		}
		x.Log = from.Log
		x.Log.cut(a.C)
		x.Commit, x.Applied = a.C, a.C
		if m.Rules[rules.SnapshotNoTable] {
			x.RowsLost = a.C
		}
		if !m.Rules[rules.SnapshotKeepsAll] {
			m.forget(s, x)
		}
	}
	s.Acked[from.Term][a.B] = max(s.Acked[from.Term][a.B], a.C)
	return true, ""
}

// crash loses the state that is not durable. The store may come back in an earlier state, and so may the commit index.
func (m *Model) crash(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	if s.Crashes >= m.Scenario.Crashes || a.C > x.Applied || a.D > x.Commit || a.D < a.C || a.C < x.RowsLost {
		return false, ""
	}
	s.Crashes++
	led := x.Role == Leader
	x.leave()
	x.Applied, x.Commit = a.C, a.D
	if m.leases.on() {
		x.PatientUntil = s.Now
		if !m.Rules[rules.LeaseForgotten] {
			x.PatientUntil += m.leases.patience[a.A]
		}
	}
	if m.Rules[rules.WitnessVolatile] {
		x.Pool = 0
	}
	if m.Rules[rules.LeaderVolatile] {
		for x.Log.N > x.Commit && x.Log.At(x.Log.N).By == a.A {
			x.Log.cut(x.Log.N - 1)
		}
	}
	if m.Rules[rules.InferLeaderTail] && led {
		x.Log.cut(x.Commit)
	}
	if s.R.Stage != NoRead && s.R.Reader == a.A {
		s.R = Read{}
	}
	return true, ""
}
