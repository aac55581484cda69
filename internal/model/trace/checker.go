package trace

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/consensus/quorum"
)

// journal is a log by the terms of its entries; entries up to Base are unknown.
type journal struct {
	base  Position
	terms []uint64
}

func (l *journal) last() Position {
	if n := len(l.terms); n > 0 {
		return Position{l.base[0] + uint64(n), l.terms[n-1]}
	}
	return l.base
}

// term returns the term at index, if the log still has it.
func (l *journal) term(index uint64) (uint64, bool) {
	switch {
	case index == l.base[0]:
		return l.base[1], true
	case index < l.base[0] || index > l.last()[0]:
		return 0, false
	}
	return l.terms[index-l.base[0]-1], true
}

// shared returns the index up to which two logs are known to be equal.
func (l *journal) shared(other *journal) uint64 {
	for i := min(l.last()[0], other.last()[0]); i > 0; i-- {
		own, known := l.term(i)
		if theirs, too := other.term(i); !known || !too || own == theirs {
			return i // entries that both have dropped have committed
		}
	}
	return 0
}

func (l *journal) clone() journal { return journal{l.base, slices.Clone(l.terms)} }

// server is the part of the specification's state that belongs to one member.
type server struct {
	term, vote uint64
	log        journal
	checked    uint64 // index up to which its log was compared with the committed one
	granted    [2]uint64
	promised   Position // its last acknowledgement: index, and term of the leader; zero once truncated
}

type answer struct {
	proposal       string
	revision, term uint64
}

// Checker holds a state of the specification.
type Checker struct {
	voters    []uint64
	servers   map[uint64]*server
	leader    map[uint64]uint64            // by term
	history   map[uint64]*journal          // by term
	acked     map[uint64]map[uint64]uint64 // by term and member
	grants    map[[2]uint64][]uint64       // by term and candidate
	committed []uint64                     // terms; zero where no member showed the entry
	accepted  map[answer][]uint64
}

// Step takes one action, or returns an error that says why the specification does not allow it.
func (c *Checker) Step(s *Step) error {
	if s.Action == Begin {
		return c.begin(s)
	}
	m := c.servers[s.Member]
	if m == nil {
		return fmt.Errorf("%w: member %d is no voter", ErrUnmapped, s.Member)
	}
	switch s.Action {
	case Start:
		return c.start(s, m)
	case Persist:
		return c.persist(s, m)
	case Grant:
		return c.grant(s, m)
	case Acknowledge:
		return c.acknowledge(s, m)
	case Commit:
		return c.commit(s, m)
	case Accept:
		return c.hold(s)
	case Answer:
		if c.leader[s.Term] != s.Member {
			return fmt.Errorf("answers in term %d, which it does not lead", s.Term)
		}
		return c.hold(s)
	case Decide:
		return c.decide(s)
	}
	return fmt.Errorf("unknown action %q", s.Action)
}

func (c *Checker) begin(s *Step) error {
	if len(s.Voters) == 0 || c.servers != nil {
		return fmt.Errorf("a trace begins once, with its voters")
	}
	*c = Checker{
		voters: s.Voters, servers: map[uint64]*server{}, leader: map[uint64]uint64{}, history: map[uint64]*journal{},
		acked: map[uint64]map[uint64]uint64{}, grants: map[[2]uint64][]uint64{}, accepted: map[answer][]uint64{},
	}
	for _, id := range s.Voters {
		c.servers[id] = &server{}
	}
	return nil
}

// start is Restart: durable state survives, and earlier acknowledgements must rest on it.
func (c *Checker) start(s *Step, m *server) error {
	switch {
	case s.Term < m.granted[0] || s.Term == m.granted[0] && m.granted[0] != 0 && s.Vote != m.granted[1]:
		return fmt.Errorf("it voted for %d in term %d, and starts with the vote for %d in term %d", m.granted[1],
			m.granted[0], s.Vote, s.Term)
	case s.Base == nil:
		return fmt.Errorf("no base")
	}
	if n := uint64(len(c.committed)); s.Base[0] > n {
		if n > 0 {
			return fmt.Errorf("its log begins after %v, which is not committed", *s.Base)
		}
		c.committed = make([]uint64, s.Base[0]) // the first entry of the founding
	}
	m.term, m.vote, m.log, m.checked = s.Term, s.Vote, journal{base: *s.Base}, 0
	for _, e := range s.Entries {
		m.log.terms = append(m.log.terms, e[1])
	}
	if m.promised[0] > 0 && m.promised[0] > m.log.base[0] {
		return c.equal(m, m.promised[1], m.promised[0])
	}
	return nil
}

// equal compares a log with that of a leader up to index.
func (c *Checker) equal(m *server, term, index uint64) error {
	theirs := c.history[term]
	if theirs == nil {
		return fmt.Errorf("nobody leads term %d", term)
	}
	if last := m.log.last()[0]; index > last {
		return fmt.Errorf("it acknowledged term %d up to %d, and its log ends at %d", term, index, last)
	}
	for i := max(m.log.base[0], theirs.base[0], 1); i <= index; i++ {
		own, _ := m.log.term(i)
		if t, ok := theirs.term(i); !ok || t != own {
			return fmt.Errorf("entry %d is of term %d, in the log of term %d's leader of term %d", i, own, term, t)
		}
	}
	return nil
}

// persist is Campaign, the term of Vote, LogAppend, Win and Receive.
func (c *Checker) persist(s *Step, m *server) error {
	switch {
	case s.Changes:
		return fmt.Errorf("%w: a configuration entry", ErrUnmapped)
	case s.Term < m.term:
		return fmt.Errorf("its term falls from %d to %d", m.term, s.Term)
	case s.Term == m.term && m.vote != 0 && s.Vote != m.vote:
		return fmt.Errorf("its vote in term %d changes from %d to %d", s.Term, m.vote, s.Vote)
	}
	m.term, m.vote = s.Term, s.Vote
	if s.Base != nil {
		if i := s.Base[0]; i > uint64(len(c.committed)) || c.committed[i-1] != 0 && c.committed[i-1] != s.Base[1] {
			return fmt.Errorf("its log begins after %v, which is not committed", *s.Base)
		}
		m.log, m.checked, m.promised = journal{base: *s.Base}, s.Base[0], Position{}
	}
	if len(s.Entries) == 0 {
		return nil
	}
	first, last := s.Entries[0][0], m.log.last()[0]
	if first > last+1 || first <= m.log.base[0] {
		return fmt.Errorf("entry %d follows %v", first, m.log.last())
	}
	if first <= last {
		if c.leader[m.term] == s.Member {
			return fmt.Errorf("a leader truncates its log from %d on", first)
		}
		if first <= m.checked {
			return fmt.Errorf("it truncates the committed entry %d", first)
		}
		if first <= m.promised[0] {
			if m.promised[1] == m.term {
				return fmt.Errorf("it truncates entry %d, which it acknowledged in this term", first)
			}
			m.promised = Position{}
		}
		m.log.terms = m.log.terms[:first-m.log.base[0]-1]
	}
	for _, e := range s.Entries {
		if err := c.add(s.Member, m, e); err != nil {
			return err
		}
	}
	return nil
}

// add appends an entry to a log: the leader of the entry's term made it, or the member received it from the leader of its
// present term.
func (c *Checker) add(id uint64, m *server, e Position) error {
	if e[0] != m.log.last()[0]+1 {
		return fmt.Errorf("entry %v follows %v", e, m.log.last())
	}
	if _, led := c.leader[m.term]; !led && e[1] == m.term {
		if err := c.win(id, m); err != nil {
			return err
		}
	}
	theirs := c.history[m.term]
	switch {
	case c.leader[m.term] != id && theirs == nil:
		if e[1] >= m.term {
			return fmt.Errorf("entry %v, and nobody leads term %d", e, m.term)
		}
	case c.leader[m.term] != id:
		if t, ok := theirs.term(e[0]); e[0] > theirs.base[0] && (!ok || t != e[1]) {
			return fmt.Errorf("entry %v is not in the log of term %d's leader", e, m.term)
		}
	case e[1] != m.term:
		return fmt.Errorf("the leader of term %d makes entry %v", m.term, e)
	default:
		theirs.terms = append(theirs.terms, e[1])
	}
	m.log.terms = append(m.log.terms, e[1])
	return nil
}

// win is Win: the first entry of a term is made by a member that has the votes of a majority.
func (c *Checker) win(id uint64, m *server) error {
	if m.vote != id {
		return fmt.Errorf("it leads term %d without its own vote", m.term)
	}
	votes := c.grants[[2]uint64{m.term, id}]
	if n := len(votes) + 1; n < quorum.Majority(len(c.voters)) {
		return fmt.Errorf("it leads term %d with %d votes of %d", m.term, n, len(c.voters))
	}
	log := m.log.clone()
	c.leader[m.term], c.history[m.term] = id, &log
	return c.complete(&log)
}

// complete is LeaderCompleteness.
func (c *Checker) complete(log *journal) error {
	for i := log.base[0] + 1; i <= uint64(len(c.committed)); i++ {
		if t, ok := log.term(i); !ok || c.committed[i-1] != 0 && c.committed[i-1] != t {
			return fmt.Errorf("a leader without the committed entry %d of term %d", i, c.committed[i-1])
		}
	}
	return nil
}

// grant is Vote.
func (c *Checker) grant(s *Step, m *server) error {
	candidate := c.servers[s.To]
	switch {
	case candidate == nil:
		return fmt.Errorf("%w: a vote for %d, which is no voter", ErrUnmapped, s.To)
	case m.term != s.Term || m.vote != s.To:
		return fmt.Errorf("it grants a vote to %d in term %d, having voted for %d in term %d", s.To, s.Term, m.vote, m.term)
	case s.Term == m.granted[0] && s.To != m.granted[1]:
		return fmt.Errorf("it votes for %d and %d in term %d", m.granted[1], s.To, s.Term)
	}
	if _, won := c.leader[s.Term]; !won && candidate.term == s.Term {
		own, theirs := m.log.last(), candidate.log.last()
		if theirs[1] < own[1] || theirs[1] == own[1] && theirs[0] < own[0] {
			return fmt.Errorf("it votes for a log that ends at %v, its own at %v", theirs, own)
		}
	}
	m.granted = [2]uint64{s.Term, s.To}
	key := [2]uint64{s.Term, s.To}
	if !slices.Contains(c.grants[key], s.Member) {
		c.grants[key] = append(c.grants[key], s.Member)
	}
	return nil
}

// acknowledge is LogMatching.
func (c *Checker) acknowledge(s *Step, m *server) error {
	if s.Term < m.term {
		return nil // sent late: it is not compared with what happened since
	}
	if err := c.equal(m, s.Term, s.Match[0]); err != nil {
		return err
	}
	if c.acked[s.Term] == nil {
		c.acked[s.Term] = map[uint64]uint64{}
	}
	c.acked[s.Term][s.Member] = max(c.acked[s.Term][s.Member], s.Match[0])
	if s.Term > m.promised[1] || s.Match[0] > m.promised[0] {
		m.promised = Position{s.Match[0], s.Term}
	}
	return nil
}

// commit is Commit, Infer, Hint, and the commit index of an append: a new committed index needs a majority, a known one the
// same entries.
func (c *Checker) commit(s *Step, m *server) error {
	if s.Index > m.log.last()[0] {
		return fmt.Errorf("it takes entry %d for committed, and its log ends at %d", s.Index, m.log.last()[0])
	}
	if n := uint64(len(c.committed)); s.Index > n {
		if !c.backed(s.Member, m, s.Index) {
			return fmt.Errorf("no leader's majority holds entry %d of its own term, or one after it", s.Index)
		}
		c.committed = append(c.committed, make([]uint64, s.Index-n)...)
	}
	for i := max(m.checked, m.log.base[0]) + 1; i <= s.Index; i++ {
		own, _ := m.log.term(i)
		if known := &c.committed[i-1]; *known == 0 {
			*known = own
		} else if *known != own {
			return fmt.Errorf("it takes entry %d of term %d for committed, others that of term %d", i, own, *known)
		}
	}
	m.checked = max(m.checked, s.Index)
	return nil
}

// backed reports whether a majority holds some leader's entry of its own term, at index or after it, and the member's log is
// that leader's up to index. The member knows its own disk before other members do.
func (c *Checker) backed(member uint64, m *server, index uint64) bool {
	own, _ := m.log.term(index)
	for _, term := range slices.Sorted(maps.Keys(c.leader)) {
		log := c.history[term]
		if t, ok := log.term(index); !ok || t != own {
			continue
		}
		held := []uint64{log.last()[0]} // the leader's own end
		for _, id := range c.voters {
			switch id {
			case c.leader[term]:
			case member:
				held = append(held, max(c.acked[term][id], m.log.shared(log)))
			default:
				held = append(held, c.acked[term][id])
			}
		}
		at := quorum.Reached(held)
		if t, _ := log.term(at); at >= index && t == term {
			return true
		}
	}
	return false
}

func (c *Checker) hold(s *Step) error {
	key := answer{s.Proposal, s.Revision, s.Term}
	if !slices.Contains(c.accepted[key], s.Member) {
		c.accepted[key] = append(c.accepted[key], s.Member)
	}
	return nil
}

// decide is Decide: a superquorum with the leader chose one revision in one term.
func (c *Checker) decide(s *Step) error {
	for term, leader := range c.leader {
		holders := c.accepted[answer{s.Proposal, s.Revision, term}]
		if slices.Contains(holders, leader) && len(holders) >= quorum.Super(len(c.voters)) {
			return nil
		}
	}
	return fmt.Errorf("no leader and superquorum answered %s at revision %d in one term", s.Proposal, s.Revision)
}
