package raft_test

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// fastLaws checks, after every Step, the promises of the fast path (docs/fast-path.md, L1 to L6), beside the laws of Raft.
type fastLaws struct {
	*laws
	c       *cluster
	want    store // everything committed, applied once, in order
	origin  store // before want
	wins    map[consensus.ProposalID]win
	done    map[consensus.ProposalID]uint64 // reported to a client, or as good as that: applied somewhere
	invoked map[consensus.ProposalID]uint64 // the greatest revision reported before
	top     uint64                          // of done
	reads   map[[2]uint64][]consensus.ProposalID
	pending []pendingRead
	noops   map[consensus.Term]consensus.Index
	seen    map[memberID]leaderView
	applied map[memberID]consensus.Index

	skipped, aborted, served, early, opened, snapshots, recoveredWins int
}

// win is a decision that a proposer reports.
type win struct {
	revision uint64
	reply    string
}

// pendingRead is a read that may be served at index, and the writes that it must show.
type pendingRead struct {
	by    memberID
	index consensus.Index
	must  []consensus.ProposalID
}

// leaderView is the state of a leader at its last check.
type leaderView struct {
	term consensus.Term
	last position
	wins int
}

func newFastLaws(c *cluster) *fastLaws {
	l := &fastLaws{
		laws: newLaws(), c: c, wins: map[consensus.ProposalID]win{}, done: map[consensus.ProposalID]uint64{},
		invoked: map[consensus.ProposalID]uint64{}, reads: map[[2]uint64][]consensus.ProposalID{},
		noops: map[consensus.Term]consensus.Index{}, seen: map[memberID]leaderView{}, applied: map[memberID]consensus.Index{},
	}
	l.want, l.origin = c.nodes[0].store.clone(), c.nodes[0].store.clone()
	c.check = func(n *node, out *raft.Output) {
		l.laws.check(n, out)
		for _, e := range out.Events {
			switch e := e.(type) {
			case raft.BecameLeader:
				l.noops[e.Term] = e.Noop
			case raft.LogReset:
				l.snapshots++
			}
		}
	}
	c.done = func(n *node, out *raft.Output) {
		l.membership(n, out)
		l.follow()
		for i := range out.Decided {
			l.won(n, out, consensus.Attempt{Proposal: out.Decided[i].Proposal, Revision: out.Decided[i].Revision}, string(out.Decided[i].Reply))
		}
		for _, read := range out.Reads {
			key := [2]uint64{uint64(n.id), read.ID}
			if n.replica.Leader() != n.id {
				l.early++
			}
			l.pending = append(l.pending, pendingRead{n.id, read.Index, l.reads[key]})
		}
		l.serve()
		l.leading()
	}
	return l
}

// invoke notes that a client makes a proposal for the first time.
func (l *fastLaws) invoke(id consensus.ProposalID) {
	if _, again := l.invoked[id]; !again {
		l.invoked[id] = l.top
	}
}

// ask notes the writes that a read that begins now must show.
func (l *fastLaws) ask(n *node, id uint64) {
	key := [2]uint64{uint64(n.id), id}
	l.asked[key] = l.highest
	var must []consensus.ProposalID
	for proposal := range l.done {
		must = append(must, proposal)
	}
	l.laws.asked[key] = l.highest
	l.reads[key] = must
}

func (l *fastLaws) report(id consensus.ProposalID, revision uint64) {
	if _, again := l.done[id]; !again {
		l.done[id] = revision
		l.top = max(l.top, revision)
	}
}

// won checks L1, L3 and L5 for a proposal that its proposer takes for decided.
func (l *fastLaws) won(n *node, out *raft.Output, a consensus.Attempt, reply string) {
	w := win{a.Revision, reply}
	if before, again := l.wins[a.Proposal]; again && before != w {
		l.breach("L1: %v reported as %+v, and before as %+v", a.Proposal, w, before)
	}
	l.wins[a.Proposal] = w
	if floor := l.invoked[a.Proposal]; a.Revision <= floor {
		l.breach("L3: %v reported at revision %d, %d was reported before it was invoked", a.Proposal, a.Revision, floor)
	}
	if r, applied := l.want.keys.results[a.Proposal]; applied {
		l.agrees(a.Proposal, r)
	} else if l.want.keys.revision >= a.Revision {
		l.breach("L1: %v reported at revision %d, the committed log had passed it", a.Proposal, a.Revision)
	}
	l.report(a.Proposal, a.Revision)
	if out.Config == nil {
		l.known(n, a.Proposal)
	}
}

// known checks L5: the entry of the configuration of a fast success is durable on a superquorum of its voters.
func (l *fastLaws) known(n *node, id consensus.ProposalID) {
	in := n.replica.InForce()
	holders := 0
	for _, voter := range in.Config.Voters {
		v := l.c.node(voter)
		if v.disk.base.ConfigID.Index >= in.ID.Index || v.holdsOnDisk(in.ID) {
			holders++
		}
	}
	if holders < quorum.Super(len(in.Config.Voters)) {
		l.breach("L5: %v reported under config %v, which %d of %v hold", id, in.ID, holders, in.Config.Voters)
	}
}

// agrees checks L1 for one proposal: the applied result is the reported one.
func (l *fastLaws) agrees(id consensus.ProposalID, r result) {
	if w, won := l.wins[id]; won && (r.aborted || r.revision != w.revision || r.reply != w.reply) {
		l.breach("L1: %v reported as %+v, applied as %+v", id, w, r)
	}
}

// follow applies the newly committed entries to a second state machine, and compares all members with it.
func (l *fastLaws) follow() {
	for {
		e, ok := l.committed[l.want.position.Index+1]
		if !ok {
			return
		}
		l.advance(&e)
	}
}

func (l *fastLaws) advance(e *entry) {
	k := &l.want.keys
	before, was := k.revision, k.results[e.Proposal]
	l.want.apply(e)
	r, done := k.results[e.Proposal]
	switch {
	case e.Kind == consensus.EntryAbort && r.aborted && r.index == e.Index:
		l.aborted++
	case e.Kind != consensus.EntryCommand:
	case !done || r.reply == "skipped":
		l.skipped++
		l.passed()
		return
	case r.index == e.Index:
		if _, won := l.wins[e.Proposal]; won && e.ExactRevision != 0 && e.Answered == consensus.NoMember {
			l.recoveredWins++
		}
		if !changes(e.Payload) {
			l.report(e.Proposal, r.revision)
			break
		}
		if r.revision <= before {
			l.breach("L2: %v applied at revision %d on a store at %d", e.Proposal, r.revision, before)
		}
		if floor := l.invoked[e.Proposal]; r.revision <= floor {
			l.breach("L3: %v applied at revision %d, %d was reported before it was invoked", e.Proposal, r.revision, floor)
		}
		l.report(e.Proposal, r.revision)
	}
	if r.times > 1 && was.times < r.times {
		l.breach("L1: %v applied %d times", e.Proposal, r.times)
	}
	if done {
		l.agrees(e.Proposal, r)
	}
	if k.revision != before {
		l.passed()
	}
}

// passed checks that the revision did not pass that of a reported proposal without applying it.
func (l *fastLaws) passed() {
	for id, w := range l.wins {
		if _, applied := l.want.keys.results[id]; !applied && l.want.keys.revision >= w.revision {
			l.breach("L1: %v reported at revision %d, the committed log is at %d without it", id, w.revision, l.want.keys.revision)
		}
	}
}

// sameAs compares a member's state with the expected one: the member may be behind.
func (l *fastLaws) sameAs(n *node) {
	k := &n.store.keys
	for id, r := range k.results {
		if want, ok := l.want.keys.results[id]; ok && want != r {
			l.breach("L1: %v has %v as %+v, not %+v", n.id, id, r, want)
		}
	}
	if n.store.position == l.want.position && k.revision != l.want.keys.revision {
		l.breach("L2: %v is at revision %d, not %d, at %v", n.id, k.revision, l.want.keys.revision, n.store.position)
	}
}

// serve checks L6 for the reads whose index has committed.
func (l *fastLaws) serve() {
	keep := l.pending[:0]
	for _, read := range l.pending {
		if read.index > l.want.position.Index {
			keep = append(keep, read)
			continue
		}
		l.served++
		for _, id := range read.must {
			if r, applied := l.want.keys.results[id]; !applied || r.index > read.index {
				l.breach("L6: a read by %v at %d misses %v, which was reported before", read.by, read.index, id)
			}
		}
	}
	l.pending = keep
}

// leading checks that every leader that may answer reads now holds all reported proposals, with their revisions and replies. A
// fault so shows one election before a member applies anything.
func (l *fastLaws) leading() {
	if len(l.wins) == 0 {
		return
	}
	for _, n := range l.c.nodes {
		if n.replica == nil || n.replica.Leader() != n.id {
			continue
		}
		noop, led := l.noops[n.replica.Term()]
		if !led || n.replica.Commit() < noop {
			continue
		}
		view := leaderView{term: n.replica.Term(), wins: len(l.wins)}
		if len(n.log) > 0 {
			view.last = n.log[len(n.log)-1].Position()
		}
		if l.seen[n.id] == view || !l.inTerm(n) {
			continue
		}
		l.seen[n.id] = view
		l.opened++
		l.holds(n)
	}
}

// inTerm reports whether a quorum is in the term of a leader, so that no member leads a later one.
func (l *fastLaws) inTerm(n *node) bool {
	in := n.replica.InForce().Config
	sets := [][]memberID{in.Voters}
	if in.IsJoint() {
		sets = append(sets, in.Outgoing)
	}
	var with []memberID
	for _, other := range l.c.nodes {
		term := other.disk.hard.Term
		if other.replica != nil {
			term = other.replica.Term()
		}
		if term == n.replica.Term() {
			with = append(with, other.id)
		}
	}
	return decides(sets, with)
}

func (l *fastLaws) holds(n *node) {
	s := n.store.clone()
	for i := range n.log {
		if n.log[i].Index == s.position.Index+1 {
			s.apply(&n.log[i])
		}
	}
	for id, w := range l.wins {
		r, has := s.keys.results[id]
		if !has || r.aborted || r.revision != w.revision || r.reply != w.reply {
			l.breach("L1: %v reported as %+v; leader %v of term %d, open for reads, has %+v", id, w, n.id, n.replica.Term(), r)
		}
	}
}

// same compares all members with the expected state.
func (l *fastLaws) same() {
	for _, n := range l.c.nodes {
		l.sameAs(n)
	}
	l.matching(l.c)
	if slices.ContainsFunc(l.c.nodes, func(n *node) bool { return n.replica != nil }) {
		l.intersections(l.c)
	}
}
