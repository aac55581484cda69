package joint

import "fmt"

// action is the kind of a step.
type action int8

const (
	campaign action = iota // a stands in term t
	grant                  // a votes for b
	win                    // a leads
	receive                // a receives the log of term t's leader up to n
	commit                 // leader a commits all that it can
	learn                  // a learns which entries have committed
	apply                  // a applies the entries that it knows to be committed
	crash                  // a restarts
	change                 // leader a logs the change
	finish                 // leader a logs the end of the change
	write                  // leader a logs a write
	abort                  // leader a takes the change back
	tell                   // b reports to leader a that it has switched
	retire                 // leader a reports that the leaving members may be switched off
)

type step struct {
	do         action
	a, b, t, n int8
}

func (p step) String() string {
	a, b := string(rune('A'+p.a)), string(rune('A'+p.b))
	switch p.do {
	case campaign:
		return fmt.Sprintf("%s stands in term %d", a, p.t)
	case grant:
		return fmt.Sprintf("%s votes for %s", a, b)
	case win:
		return a + " leads"
	case receive:
		return fmt.Sprintf("%s receives the log of term %d up to %d", a, p.t, p.n)
	case commit:
		return a + " commits"
	case learn:
		return a + " learns what has committed"
	case apply:
		return a + " applies it"
	case crash:
		return a + " restarts"
	case change:
		return a + " logs C(old,new)"
	case finish:
		return a + " logs C(new), or that it is in force"
	case write:
		return a + " logs a write"
	case tell:
		return fmt.Sprintf("%s hears that %s has switched", a, b)
	case retire:
		return a + " says that the change is settled: who leaves is switched off"
	}
	return a + " logs C(old): the change is taken back"
}

// knows reports whether the commit indexes of followers matter.
func (b *search) knows() bool { return b.protocol == Apply || b.activates() }

// possible lists the steps that are worth trying. It leaves out steps that only reduce what other members can do: candidacies
// that never succeed, and votes beyond those that are enough.
func (b *search) possible(s *state) (all []step) {
	newest := int8(1)
	for i := range b.members {
		newest = max(newest, s.m[i].term)
	}
	for i := range int8(b.members) {
		m := &s.m[i]
		if b.gone(s, i) {
			continue
		}
		for t := m.term + 1; t <= newest+1 && s.campaigns < b.campaigns; t++ {
			all = append(all, step{do: campaign, a: i, t: t})
		}
		if b.knows() {
			all = append(all, step{do: learn, a: i}, step{do: crash, a: i})
		}
		if b.protocol == Apply {
			all = append(all, step{do: apply, a: i})
		}
		switch m.role {
		case candidate:
			for v := range int8(b.members) {
				if !b.gone(s, v) {
					all = append(all, step{do: grant, a: v, b: i})
				}
			}
			all = append(all, step{do: win, a: i})
		case leader:
			for _, do := range []action{commit, change, finish, write, abort} {
				all = append(all, step{do: do, a: i})
			}
			all = b.switching(s, i, all)
		}
		for t := m.term; t <= newest; t++ {
			for n := int8(1); n <= s.sent[t].n; n++ {
				all = append(all, step{do: receive, a: i, t: t, n: n})
			}
		}
	}
	return all
}

// tidy clears the parts of a state that no later step reads, so that more states are equal.
func (b *search) tidy(s *state) {
	oldest := s.m[0].term
	for i := range b.members {
		oldest = min(oldest, s.m[i].term)
		if m := &s.m[i]; m.role == follower && !b.knows() {
			m.commit = 0
		}
	}
	for t := range int8(len(s.sent)) {
		if t < oldest {
			s.sent[t] = journal{}
		}
		if of := s.leads[t] - 1; of < 0 || s.m[of].role != leader || s.m[of].term != t {
			s.held[t] = [mostMembers]int8{}
		}
	}
}

// quorum reports whether members form a quorum of the configuration in force at m.
func (b *search) quorum(m *member, in set) bool {
	old, next := b.force(m)
	return (old == 0 || in.most(old)) && (next == 0 || in.most(next))
}

// force returns the sets of voters in force at a member, one of which may be empty.
func (b *search) force(m *member) (old, next set) {
	far := m.log.n
	if b.protocol == Apply {
		far = m.applied
	}
	for i := far; i > 0; i-- {
		switch m.log.at(i).kind {
		case both:
			if b.protocol == Direct || b.activates() && m.commit >= i {
				return 0, b.new
			}
			return b.old, b.new
		case leave:
			return 0, b.new
		case back:
			return b.old, 0
		}
	}
	return b.old, 0
}

// take performs a step. It reports whether the step was possible, and the law that it broke, or an empty string.
func (b *search) take(s *state, p step) (ok bool, bad string) {
	m := &s.m[p.a]
	switch p.do {
	case campaign:
		return b.stand(s, m, p), ""
	case grant:
		return b.grants(s, m, p), ""
	case win:
		return b.wins(s, m, p)
	case receive:
		return receives(s, m, p), ""
	case commit:
		return b.commits(s, m, p)
	case learn:
		n := m.log.shared(&s.committed)
		ok = n > m.commit
		m.commit = max(m.commit, n)
		return ok, ""
	case apply:
		ok = m.commit > m.applied
		m.applied = max(m.commit, m.applied)
		return ok, ""
	case crash:
		ok = m.role != follower || m.commit > 0
		kept := b.kept(m)
		ok = ok && (m.role != follower || m.commit > kept)
		m.rest()
		m.commit = kept
		return ok, ""
	case tell:
		return b.tells(s, m, p), ""
	case retire:
		return b.retires(s, m), ""
	}
	return b.logs(s, m, p)
}

// rest makes a member a follower.
func (m *member) rest() { m.role, m.votes, m.lacked, m.told, m.unseen = follower, 0, 0, 0, false }

func (m *member) follow(term int8) {
	if m.term < term {
		m.term, m.voted = term, false
	}
	m.rest()
}

func (b *search) stand(s *state, m *member, p step) bool {
	old, next := b.force(m)
	if b.voters && !(old|next).has(int(p.a)) || m.applied < m.commit && b.protocol == Apply {
		return false
	}
	m.follow(p.t)
	m.voted, m.role, m.votes = true, candidate, one(int(p.a))
	s.campaigns++
	return true
}

func (b *search) grants(s *state, m *member, p step) bool {
	c := &s.m[p.b]
	mine, theirs := m.log.last(), c.log.last()
	behind := theirs.term < mine.term || theirs.term == mine.term && c.log.n < m.log.n
	if p.a == p.b || m.term > c.term || m.term == c.term && m.voted || behind || b.prefers(m, c, p.a) || c.role != candidate ||
		b.enough(c) && b.back != Unseen {
		return false
	}
	m.follow(c.term)
	m.voted = true
	c.votes |= one(int(p.a))
	if at := c.log.find(both); at > 0 && m.log.shared(&c.log) < at {
		c.lacked |= one(int(p.a))
	}
	return true
}

// half reports whether a log ends in a joint configuration.
func (m *member) half() bool {
	return m.log.find(both) > 0 && m.log.find(leave) == 0 && m.log.find(back) == 0
}

// enough reports whether a candidate has the votes that it needs.
func (b *search) enough(m *member) bool {
	return b.quorum(m, m.votes) || b.back == OldElects && m.half() && m.votes.most(b.old)
}

func (b *search) wins(s *state, m *member, p step) (bool, string) {
	if !b.enough(m) || m.log.n == mostEntries {
		return false, ""
	}
	if other := s.leads[m.term]; other != 0 && other != p.a+1 {
		return true, fmt.Sprintf("election safety: %c and %c lead term %d", 'A'+other-1, 'A'+p.a, m.term)
	}
	m.role = leader
	m.unseen = m.half() && b.back == Unseen && (m.lacked.most(b.old) || m.lacked.most(b.new))
	m.votes, m.lacked = 0, 0
	s.leads[m.term] = p.a + 1
	if same := m.log.shared(&s.committed); same < s.committed.n && s.in[same] < m.term {
		return true, fmt.Sprintf("leader completeness: %c leads term %d and lacks a committed entry", 'A'+p.a, m.term)
	}
	s.append(m, p.a, noop)
	return true, ""
}

// append appends an entry to a leader's log.
func (s *state) append(m *member, i int8, k kind) {
	m.log.add(entry{k, m.term})
	s.sent[m.term] = m.log
	s.held[m.term][i] = m.log.n
}

func receives(s *state, m *member, p step) bool {
	theirs := &s.sent[p.t]
	if s.leads[p.t] == 0 || s.leads[p.t] == p.a+1 || m.term > p.t ||
		m.term == p.t && m.role == follower && m.log.shared(theirs) >= p.n && (s.held[p.t][p.a] >= p.n ||
			s.m[s.leads[p.t]-1].role != leader || s.m[s.leads[p.t]-1].term != p.t) {
		return false
	}
	m.follow(p.t)
	same := m.log.shared(theirs)
	if p.n > same {
		m.log.cut(same)
		for i := same; i < p.n; i++ {
			m.log.add(theirs.e[i])
		}
	}
	m.commit, m.applied = min(m.commit, m.log.n), min(m.applied, m.log.n)
	s.held[p.t][p.a] = max(s.held[p.t][p.a], p.n)
	return true
}

// commits moves a leader's commit index as far as it can: to an entry of its term that a quorum holds.
func (b *search) commits(s *state, m *member, p step) (bool, string) {
	for n := m.log.n; n > m.commit && m.log.at(n).term == m.term; n-- {
		var in set
		for i := range b.members {
			if s.held[m.term][i] >= n {
				in |= one(i)
			}
		}
		if !b.quorum(m, in) {
			continue
		}
		m.commit = n
		if m.log.shared(&s.committed) < min(n, s.committed.n) {
			return true, "state machine safety: two entries committed at one index"
		}
		at := m.log.find(both)
		takesBack := m.log.find(back) > 0
		for i := s.committed.n; i < n; i++ {
			if m.log.e[i].kind == back && s.decided && b.protocol != Joint {
				return true, fmt.Sprintf("decided stays decided: %c takes back what had committed", 'A'+p.a)
			}
			s.committed.add(m.log.e[i])
			s.in[i] = m.term
		}
		s.decided = s.decided || at > 0 && n >= at && !takesBack
		return true, ""
	}
	return false, ""
}

// logs appends the entry that a leader's step asks for.
func (b *search) logs(s *state, m *member, p step) (bool, string) {
	if m.role != leader || m.log.n == mostEntries {
		return false, ""
	}
	opened := m.log.opened(m.term)
	open, joint := m.commit >= opened, m.log.find(both)
	ended := m.log.find(leave) > 0 || m.log.find(back) > 0
	switch p.do {
	case change:
		if !open || joint > 0 {
			return false, ""
		}
		s.append(m, p.a, both)
	case finish:
		applied := b.protocol != Apply || m.applied >= joint
		twoEntries := b.protocol == Activate && b.off || !b.activates() && b.protocol != Direct
		if !open || joint == 0 || ended || m.commit < joint || !applied || !b.new.has(int(p.a)) || !twoEntries {
			return false, ""
		}
		s.append(m, p.a, leave)
	case write:
		if !open || !b.activates() || m.log.n > 4 || m.log.last().kind == noop {
			return false, ""
		}
		s.append(m, p.a, noop)
	case abort:
		if b.back == NoWay || joint == 0 || ended || b.back == Committed && !open || b.back == Unseen && !open && !m.unseen {
			return false, ""
		}
		if b.protocol == JointEarly && m.commit >= joint {
			return false, ""
		}
		s.append(m, p.a, back)
	}
	return true, ""
}
