package joint

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"
)

// Protocol is how a change is made.
type Protocol string

// The protocols that change several voters at once.
const (
	Joint      Protocol = "joint"
	JointEarly Protocol = "joint-early"
	Activate   Protocol = "activate"
	Apply      Protocol = "apply"
	// Switched is the experiment of ADR 63: Activate with no entry after it. A member that knows of the commit has switched,
	// and keeps that over a crash. Once a majority of the new voters has reported it to the leader, members that leave may be
	// switched off. Votes do not carry the commit index: a switched member refuses a candidate with an equal log that has not
	// switched.
	Switched Protocol = "activate-switched"
	// SwitchedNew is the same, but only new voters refuse.
	SwitchedNew Protocol = "activate-switched-new"
	// SwitchedTold is the same, but votes carry the commit index, and no voter refuses for it.
	SwitchedTold Protocol = "activate-switched-told"
	// Direct logs C(new) at once, in force at append: it has no stage in which both majorities are asked, and is wrong.
	Direct Protocol = "direct"
)

// Way is the condition under which a leader may append C(old) again, which takes a joint change back.
type Way string

// The ways back.
const (
	NoWay Way = "none"
	// Committed is the shipped rule: the leader has committed an entry of its own term, C(new) is not in its log, and with
	// joint-early it does not know that C(old,new) has committed.
	Committed Way = "committed"
	// AnyLeader is the same without an entry of its own term.
	AnyLeader Way = "any-leader"
	// Unseen is AnyLeader if the votes for the leader show that C(old,new) had not committed.
	Unseen Way = "unseen"
	// OldElects lets a majority of the old voters elect a leader that has C(old,new), and that leader take the change back.
	OldElects Way = "old-elects"
)

// Search says which states to visit, and which question to ask in them.
type Search struct {
	Protocol  Protocol
	Back      Way
	Old, New  []int // voters, by number; member 0 leads term 1
	Campaigns int   // number of candidacies after term 1
	// SwitchOff asks, once a change is settled and the leaving members are switched off, whether every majority of the new
	// voters can elect a leader, and before that, whether all members together can. For activate and its variants.
	SwitchOff bool
	// OnlyVotersStand forbids candidates that are not voters in the configuration in force at them. The shipped rule lets such
	// a member stand, without counting its own vote (ADR 66).
	OnlyVotersStand bool
	// Alive asks whether any set of members with a majority of the old and of the new voters can elect a leader.
	Alive  bool
	States int // limit of visited states; zero: none
	Limit  time.Duration
}

// Result is the outcome of a search.
type Result struct {
	States, Depth int
	Complete      bool     // all states were visited
	Broken        string   // the law that broke, or empty
	Steps         []string // the shortest path to it
}

// ErrSearch is returned for an invalid search.
var ErrSearch = errors.New("joint: invalid search")

type search struct {
	protocol  Protocol
	back      Way
	off       bool
	voters    bool // only voters stand
	alive     bool
	old, new  set
	members   int
	campaigns int8
	turns     [][mostMembers]int // renamings of members that change nothing
	seed      maphash.Seed
	seen      map[uint64]struct{}
	parents   []int32
	steps     []step
}

type node struct {
	id int32
	s  state
}

// Run visits states breadth first until a law breaks, all states are visited, or a limit is reached. The error is ErrSearch.
func Run(o Search) (Result, error) {
	b, err := begin(o)
	if err != nil {
		return Result{}, err
	}
	start, level := time.Now(), []node{{0, b.first()}}
	b.seen[b.key(&level[0].s)] = struct{}{}
	b.parents, b.steps = append(b.parents, -1), append(b.steps, step{})
	r := Result{}
	for ; len(level) > 0; r.Depth++ {
		var next []node
		for i := range level {
			if o.States > 0 && len(b.parents) >= o.States || i%1024 == 0 && o.Limit > 0 && time.Since(start) > o.Limit {
				r.States = len(b.parents)
				return r, nil
			}
			for _, a := range b.possible(&level[i].s) {
				s := level[i].s
				ok, bad := b.take(&s, a)
				if !ok {
					continue
				}
				b.tidy(&s)
				if bad == "" {
					bad = b.stuck(&s)
				}
				key := b.key(&s)
				if _, known := b.seen[key]; known && bad == "" {
					continue
				}
				b.seen[key] = struct{}{}
				id := int32(len(b.parents))
				b.parents, b.steps = append(b.parents, level[i].id), append(b.steps, a)
				if bad != "" {
					r.States, r.Broken, r.Steps = len(b.parents), bad, b.way(id)
					return r, nil
				}
				next = append(next, node{id, s})
			}
		}
		level = next
	}
	r.States, r.Complete = len(b.parents), true
	return r, nil
}

// Play takes steps by their text, in order, and returns the law that breaks at the last one. An unknown or impossible step is
// an error.
func Play(o Search, steps []string) (Result, error) {
	b, err := begin(o)
	if err != nil {
		return Result{}, err
	}
	s := b.first()
	for n, text := range steps {
		all := b.possible(&s)
		at := slices.IndexFunc(all, func(p step) bool { return p.String() == text })
		if at < 0 {
			return Result{}, fmt.Errorf("%w: step %d, %q, is none here", ErrSearch, n+1, text)
		}
		ok, bad := b.take(&s, all[at])
		if !ok {
			return Result{}, fmt.Errorf("%w: step %d, %q, is not possible", ErrSearch, n+1, text)
		}
		if bad != "" {
			return Result{Broken: bad, Steps: steps[:n+1], Depth: n + 1}, nil
		}
		b.tidy(&s)
		if bad = b.stuck(&s); bad != "" {
			return Result{Broken: bad, Steps: steps[:n+1], Depth: n + 1}, nil
		}
	}
	return Result{Steps: steps, Depth: len(steps)}, nil
}

func begin(o Search) (*search, error) {
	b := &search{
		protocol: o.Protocol, back: o.Back, off: o.SwitchOff, voters: o.OnlyVotersStand, alive: o.Alive,
		campaigns: int8(o.Campaigns), seed: maphash.MakeSeed(), seen: map[uint64]struct{}{},
	}
	protocols := []Protocol{Joint, JointEarly, Activate, Apply, Switched, SwitchedNew, SwitchedTold, Direct}
	ways := []Way{NoWay, Committed, AnyLeader, Unseen, OldElects}
	if !slices.Contains(protocols, o.Protocol) || !slices.Contains(ways, o.Back) {
		return nil, fmt.Errorf("%w: protocol %q, way back %q: there are %v and %v", ErrSearch, o.Protocol, o.Back, protocols,
			ways)
	}
	if o.SwitchOff && o.Protocol != Activate && !b.switches() {
		return nil, fmt.Errorf("%w: %s: what is left after it is looked at for activate and its kin", ErrSearch, o.Protocol)
	}
	for _, voters := range [][]int{o.Old, o.New} {
		for _, i := range voters {
			if i < 0 || i >= mostMembers {
				return nil, fmt.Errorf("%w: member %d: there are 0 to %d", ErrSearch, i, mostMembers-1)
			}
			b.members = max(b.members, i+1)
		}
	}
	for _, i := range o.Old {
		b.old |= one(i)
	}
	for _, i := range o.New {
		b.new |= one(i)
	}
	if !b.old.has(0) || b.new == 0 || o.Campaigns < 0 || o.Campaigns >= mostTerms {
		return nil, fmt.Errorf("%w: member 0 must be an old voter, there must be new ones, and 0 to %d candidacies", ErrSearch,
			mostTerms-1)
	}
	b.turns = b.renamings()
	return b, nil
}

// first is the state of a cluster whose leader 0 of term 1 has committed its first entry, which all members have.
func (b *search) first() (s state) {
	s.leads[1] = 1
	s.sent[1].add(entry{noop, 1})
	s.committed = s.sent[1]
	for i := range b.members {
		s.m[i] = member{term: 1, voted: true, log: s.sent[1], commit: 1, applied: 1}
		s.held[1][i] = 1
	}
	s.m[0].role = leader
	return s
}

// renamings are the permutations of members that change nothing: of members in the same sets, without the first member.
func (b *search) renamings() (all [][mostMembers]int) {
	same := func(i, k int) bool {
		return b.old.has(i) == b.old.has(k) && b.new.has(i) == b.new.has(k) && (i == 0) == (k == 0)
	}
	var fill func(turn [mostMembers]int, used set, i int)
	fill = func(turn [mostMembers]int, used set, i int) {
		if i == b.members {
			all = append(all, turn)
			return
		}
		for k := range b.members {
			if !used.has(k) && same(i, k) {
				turn[i] = k
				fill(turn, used|one(k), i+1)
			}
		}
	}
	fill([mostMembers]int{}, 0, 0)
	return all
}

// key is equal for states that differ only in the names of members.
func (b *search) key(s *state) uint64 {
	least := uint64(0)
	for n, turn := range b.turns {
		t := *s
		for i := range b.members {
			m := s.m[i]
			m.votes, m.lacked = turned(m.votes, &turn, b.members), turned(m.lacked, &turn, b.members)
			m.told = turned(m.told, &turn, b.members)
			t.m[turn[i]] = m
			for term := range t.held {
				t.held[term][turn[i]] = s.held[term][i]
			}
		}
		for term, of := range s.leads {
			if of > 0 {
				t.leads[term] = int8(turn[of-1]) + 1
			}
		}
		if h := maphash.Comparable(b.seed, t); n == 0 || h < least {
			least = h
		}
	}
	return least
}

func turned(s set, turn *[mostMembers]int, members int) (t set) {
	for i := range members {
		if s.has(i) {
			t |= one(turn[i])
		}
	}
	return t
}

// way returns the steps that led to a state.
func (b *search) way(id int32) (lines []string) {
	for ; id > 0; id = b.parents[id] {
		lines = append(lines, b.steps[id].String())
	}
	slices.Reverse(lines)
	return lines
}

func (r Result) String() string {
	far := "stopped"
	if r.Complete {
		far = "complete"
	}
	if r.Broken != "" {
		return fmt.Sprintf("%s, %d states, %d steps:\n  %s", r.Broken, r.States, len(r.Steps), strings.Join(r.Steps, "\n  "))
	}
	return fmt.Sprintf("holds: %s, %d states, depth %d", far, r.States, r.Depth)
}
