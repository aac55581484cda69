package joint

import "math/bits"

const (
	mostMembers = 5
	mostEntries = 6
	mostTerms   = 4
)

// kind is the kind of an entry.
type kind int8

const (
	nothing kind = iota
	noop         // first entry of a new leader; later ones stand for writes
	both         // C(old,new)
	leave        // C(new)
	back         // C(old): the change is aborted
)

type entry struct {
	kind kind
	term int8
}

// journal is a log; indexes begin at 1.
type journal struct {
	n int8
	e [mostEntries]entry
}

func (l *journal) at(index int8) entry { return l.e[index-1] }

func (l *journal) add(e entry) { l.e[l.n] = e; l.n++ }

func (l *journal) last() entry {
	if l.n == 0 {
		return entry{}
	}
	return l.e[l.n-1]
}

// cut drops everything after index.
func (l *journal) cut(index int8) {
	for l.n > index {
		l.n--
		l.e[l.n] = entry{}
	}
}

// shared returns the length of the longest common prefix of two logs.
func (l *journal) shared(o *journal) int8 {
	n := min(l.n, o.n)
	for i := range n {
		if l.e[i] != o.e[i] {
			return i
		}
	}
	return n
}

// find returns the index of the first entry of a kind, zero if there is none.
func (l *journal) find(k kind) int8 {
	for i := range l.n {
		if l.e[i].kind == k {
			return i + 1
		}
	}
	return 0
}

// opened returns the index of a term's first entry.
func (l *journal) opened(term int8) int8 {
	for i := range l.n {
		if l.e[i].term == term {
			return i + 1
		}
	}
	return 0
}

type role int8

const (
	follower role = iota
	candidate
	leader
)

// member is one server. Its term, vote and log outlive a crash.
type member struct {
	term    int8
	voted   bool // in its term
	log     journal
	role    role
	commit  int8 // as the member knows; two-entry protocols: of a leader only, the others do not need it
	votes   set  // candidate
	lacked  set  // candidate: its voters without C(old,new)
	unseen  bool // leader: so many lacked it that C(old,new) had not committed, and never will in an earlier term
	applied int8 // protocol apply: last applied index
	told    set  // leader: members that reported that they have switched
}

// state is the state of the cluster. sent[t] is the longest log that the leader of term t ever had; held[t][i] is the index up
// to which member i acknowledged it.
type state struct {
	m         [mostMembers]member
	sent      [mostTerms + 1]journal
	leads     [mostTerms + 1]int8 // leader of each term, plus one; zero: none
	held      [mostTerms + 1][mostMembers]int8
	committed journal           // ghost: all entries that ever committed
	decided   bool              // ghost: C(old,new) has committed, and no leader was taking it back
	in        [mostEntries]int8 // ghost: the term in which each entry committed
	campaigns int8
	retired   bool // the leaving members are switched off
}

// set is a set of members, as bits.
type set uint8

func one(i int) set            { return 1 << i }
func (s set) has(i int) bool   { return s>>i&1 == 1 }
func (s set) most(of set) bool { return 2*bits.OnesCount8(uint8(s&of)) > bits.OnesCount8(uint8(of)) }
