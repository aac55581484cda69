package model

// Members of a fixed cluster of three are interchangeable: states that differ only in their names are one.

var orders = [][3]int8{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

func renameSet(set uint8, to [3]int8) (o uint8) {
	for i, x := range to {
		if Has(set, int8(i)) {
			o |= Bit(x)
		}
	}
	return o
}

func renameOne(i int8, to [3]int8) int8 {
	if i < 0 {
		return i
	}
	return to[i]
}

func renameLog(l *journal, to [3]int8) {
	for i := range l.N {
		l.E[i].By = renameOne(l.E[i].By, to)
	}
}

// rename gives the members of a state other names.
func rename(s *State, to [3]int8) State {
	o := *s
	for i, other := range to {
		x := s.M[i]
		renameLog(&x.Log, to)
		x.Voted, x.Heir = renameOne(x.Voted, to), renameOne(x.Heir, to)
		x.Votes, x.Echoes = renameSet(x.Votes, to), renameSet(x.Echoes, to)
		for k, t := range to {
			x.Held[t] = s.M[i].Held[k]
		}
		o.M[other] = x
	}
	for j := range o.A {
		a, b := &o.A[j], &s.A[j]
		if !b.Used {
			continue
		}
		a.Accepted = renameSet(b.Accepted, to)
		for k, t := range to {
			a.AccTerm[t], a.AccID[t] = b.AccTerm[k], b.AccID[k]
		}
		if b.Fast || b.Pending {
			a.FastBy = to[b.FastBy]
		}
	}
	for t := range o.TermLog {
		renameLog(&o.TermLog[t], to)
		o.LeaderOf[t] = renameOne(s.LeaderOf[t], to)
		for k, n := range to {
			o.Acked[t][n] = s.Acked[t][k]
		}
	}
	renameLog(&o.Committed, to)
	renameRead(&o.R, &s.R, to)
	return o
}

func renameRead(o, r *Read, to [3]int8) {
	if r.Stage == NoRead {
		return
	}
	o.Reader, o.Leader = to[r.Reader], to[r.Leader]
	o.Echoes, o.Told, o.ToldAll = renameSet(r.Echoes, to), renameSet(r.Told, to), renameSet(r.ToldAll, to)
	o.Ended = renameSet(r.Ended, to)
	for k, t := range to {
		o.Ends[t] = r.Ends[k]
		o.ToldTerm[t], o.ToldLast[t], o.ToldID[t] = r.ToldTerm[k], r.ToldLast[k], r.ToldID[k]
	}
}

// Canonical is the same for states that differ only in the names of their members.
func Canonical(s *State) uint64 {
	best := ^uint64(0)
	for _, to := range orders {
		o := rename(s, to)
		best = min(best, hash(&o))
	}
	return best
}
