package joint

import (
	"fmt"
	"math/bits"
	"strings"
)

// The end of a change by activate and by its variants: leaving members are switched off.

// switches reports whether the protocol logs nothing after the change, and members report that they have switched.
func (b *search) switches() bool {
	return b.protocol == Switched || b.protocol == SwitchedNew || b.protocol == SwitchedTold
}

func (b *search) activates() bool { return b.protocol == Activate || b.switches() }

// gone reports whether a member is switched off.
func (b *search) gone(s *state, i int8) bool {
	return s.retired && b.old.has(int(i)) && !b.new.has(int(i))
}

// switched reports whether a member knows that the change has committed.
func (m *member) switched() bool {
	at := m.log.find(both)
	return at > 0 && m.commit >= at
}

// kept is the commit index that a member knows after a crash.
func (b *search) kept(m *member) int8 {
	if b.switches() && m.switched() {
		return m.log.find(both)
	}
	return 0
}

// prefers reports whether voter i refuses a candidate because the candidate has not switched.
func (b *search) prefers(voter, candidate *member, i int8) bool {
	return (b.protocol == Switched || b.protocol == SwitchedNew && b.new.has(int(i))) && voter.switched() &&
		!candidate.switched() && voter.log == candidate.log
}

// switching lists the steps of a leader towards the end of a change.
func (b *search) switching(s *state, i int8, all []step) []step {
	if !b.off || s.retired {
		return all
	}
	for v := range int8(b.members) {
		if b.switches() && v != i {
			all = append(all, step{do: tell, a: i, b: v})
		}
	}
	return append(all, step{do: retire, a: i})
}

func (b *search) tells(s *state, m *member, p step) bool {
	from := &s.m[p.b]
	if m.role != leader || m.told.has(int(p.b)) || from.term != m.term || !from.switched() || !b.new.has(int(p.b)) {
		return false
	}
	m.told |= one(int(p.b))
	return true
}

// retires switches off the leaving members, once the leader knows that enough other members have switched or the change is
// settled.
func (b *search) retires(s *state, m *member) bool {
	if m.role != leader || !m.switched() {
		return false
	}
	settled := m.log.find(leave) > 0 && m.commit >= m.log.find(leave)
	if b.switches() {
		told := m.told
		for i := range b.members {
			if &s.m[i] == m {
				told |= one(i)
			}
		}
		settled = told.most(b.new)
	}
	s.retired = settled
	return settled
}

// stuck names members that cannot elect a leader: all members together, or, once the leaving members are switched off, a
// majority of the new voters.
func (b *search) stuck(s *state) string {
	if b.alive {
		for up := range set(1 << b.members) {
			if up.most(b.old) && up.most(b.new) && !b.elects(s, up) {
				return fmt.Sprintf("a leader can be elected: %s are most of the old and of the new voters, and none can",
					names(up))
			}
		}
	}
	if !b.off {
		return ""
	}
	if !s.retired {
		if up := set(1<<b.members - 1); !b.elects(s, up) {
			return fmt.Sprintf("a leader can be elected: all members are up, and none of them can (%s)", names(up))
		}
		return ""
	}
	for up := range set(1 << b.members) {
		if up&^b.new == 0 && up.most(b.new) && !b.elects(s, up) {
			return fmt.Sprintf("a leader can be elected: of %s, most of the new voters, none can", names(up))
		}
	}
	return ""
}

// elects reports whether members that receive messages only from each other have a leader, or can elect one, as they are.
func (b *search) elects(s *state, up set) bool {
	newest := int8(0)
	for i := range b.members {
		if up.has(i) {
			newest = max(newest, s.m[i].term)
		}
	}
	for i := range b.members {
		if !up.has(i) {
			continue
		}
		c := s.m[i]
		if c.role == leader && c.term == newest && b.quorum(&c, up) {
			return true // that leader goes on
		}
		for v := range b.members {
			if up.has(v) && (!b.switches() || b.protocol == SwitchedTold) {
				c.commit = max(c.commit, min(s.m[v].commit, s.m[v].log.shared(&c.log)))
			}
		}
		old, next := b.force(&c)
		if b.voters && !(old | next).has(i) {
			continue
		}
		votes := one(i)
		for v := range b.members {
			m := &s.m[v]
			mine, theirs := m.log.last(), c.log.last()
			behind := theirs.term < mine.term || theirs.term == mine.term && c.log.n < m.log.n
			if up.has(v) && !behind && !b.prefers(m, &c, int8(v)) {
				votes |= one(v)
			}
		}
		if b.quorum(&c, votes) {
			return true
		}
	}
	return false
}

func names(s set) string {
	var words []string
	for i := range bits.Len8(uint8(s)) {
		if s.has(i) {
			words = append(words, string(rune('A'+i)))
		}
	}
	return strings.Join(words, ", ")
}
