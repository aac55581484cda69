package model

import "github.com/quorate/quorate/internal/consensus/rules"

// leases are the leader leases: members promise the leader not to help elect another one for a while.
type leases struct {
	electorate
	patience *[MaxMembers]int8 // ticks; zero without leader leases
	members  int
}

// on reports whether leaders have leases.
func (l *leases) on() bool { return l.patience[0] != 0 }

// promised reports whether a member must wait for the end of a lease before it helps elect another leader.
func (l *leases) promised(s *State, x *member) bool {
	return l.on() && !l.rules[rules.LeaseVotesAnyway] && s.Now < x.PatientUntil
}

// tick advances the clock.
func (l *leases) tick(s *State, _ Action) (bool, string) {
	if !l.on() || s.Now >= 100 {
		return false, ""
	}
	s.Now++
	return true, ""
}

// round begins a round of heartbeats; its echoes may extend the lease.
func (l *leases) round(s *State, a Action) (bool, string) {
	x := &s.M[a.A]
	if !l.on() || x.Role != Leader {
		return false, ""
	}
	x.RoundAt, x.Echoes = s.Now, Bit(a.A)
	return true, ""
}

// promise notes a follower's answer to a round of leader i: the follower does not help elect another leader for a while.
func (l *leases) promise(s *State, v, i int8) {
	s.M[v].PatientUntil = s.Now + l.patience[v]
	s.M[i].Echoes |= Bit(v)
	l.extend(&s.M[i], i)
}

// extend extends a lease by the shortest of the promises.
func (l *leases) extend(x *member, i int8) {
	at, _ := l.Config(&x.Log)
	if !l.Quorum(at, x.Echoes) {
		return
	}
	least := l.patience[i]
	for k := range int8(l.members) {
		if Has(x.Echoes, k) && !l.rules[rules.OwnLeaseTicks] {
			least = min(least, l.patience[k])
		}
	}
	x.LeaseUntil = max(x.LeaseUntil, x.RoundAt+least)
}

// hold reports whether a leader's lease holds.
func (l *leases) hold(s *State, x *member) bool {
	return l.on() && s.Now < x.LeaseUntil && !x.LeaseBarred && x.open()
}
