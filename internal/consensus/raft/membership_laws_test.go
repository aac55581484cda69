package raft_test

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// membership checks, after every Step, the laws of configuration changes that concern one member's log.
func (l *laws) membership(n *node, out *raft.Output) {
	s := n.replica.Status()
	l.belowCommit(n, &s)
	for _, e := range out.Events {
		switch e := e.(type) {
		case raft.ConfigSettled:
			l.settle(n, e.ID)
		case raft.BecameLeader:
			if s.Removed {
				l.breach("%v leads term %d and knows that it was removed for ever", n.id, e.Term)
			}
		}
	}
	if in := n.replica.InForce(); n.replica.Stable() && (!in.Settled || in.Config.IsJoint() || in.ID.Index > s.Applied) {
		l.breach("%v takes config %v for stable: settled %t, applied up to %d", n.id, in.ID, in.Settled, s.Applied) // ADR 0014 rests on it
	}
	if want := n.rules(&s); want != s.ConfigID {
		l.breach("%v has config %v in force, its log and protocol say %v: %s", n.id, s.ConfigID, want, n.drawn())
	}
	// With protocol apply a joint configuration stays in force, its successor committed, until that is applied.
	if s.Role == raft.Leader && !slices.Contains(s.Config.Voters, n.id) && s.ConfigSettled && !s.Config.IsJoint() {
		l.breach("%v leads on outside the settled config %v", n.id, s.ConfigID)
	}
	if len(out.Entries) > 0 {
		l.chain(n)
	}
}

// rules returns, by the log alone, which configuration must be in force.
func (n *node) rules(s *raft.Status) consensus.ConfigID {
	id, protocol, joint := n.logMeta.ConfigID, n.logMeta.Protocol, n.logMeta.Config.IsJoint()
	id.Stage = 0
	for i := range n.log {
		change, ok := configOf(&n.log[i])
		if !ok || (change.Protocol == consensus.ProtocolApply && n.log[i].Index > s.Applied) {
			continue
		}
		id = consensus.ConfigID{Index: n.log[i].Index, Term: n.log[i].Term}
		protocol, joint = change.Protocol, change.Config.IsJoint()
	}
	if protocol == consensus.ProtocolActivate && joint && id.Index <= s.Commit {
		id.Stage = 1
	}
	return id
}

func configOf(e *entry) (consensus.ConfigChange, bool) {
	if e.Kind != consensus.EntryConfig {
		return consensus.ConfigChange{}, false
	}
	change, err := consensus.DecodeConfigChange(e.Payload)
	return change, err == nil
}

// chain checks that each change replaces the one before it in the log, that the majorities of two consecutive ones intersect,
// and that only the last, or an abort of it, may be uncommitted.
func (l *laws) chain(n *node) {
	before, config, open := n.logMeta.ConfigID, n.logMeta.Config, 0
	for i := range n.log {
		e := &n.log[i]
		change, ok := configOf(e)
		if !ok {
			continue
		}
		if before.Index > 0 && change.Replaces.Index != before.Index {
			l.breach("%v holds a change at %v that replaces %v, after %v", n.id, e.Position(), change.Replaces, before)
		}
		if before.Index > 0 && !meet(&config, &change.Config) {
			l.breach("%v holds a change at %v whose majorities need not meet those before: %s", n.id, e.Position(), n.drawn())
		}
		if change.Abort && before.Index > 0 {
			if e.Index <= l.highest {
				l.aborted[before] = true
			}
		} else if e.Index > l.highest {
			open++
		}
		before, config = consensus.ConfigID{Index: e.Index, Term: e.Term}, change.Config
	}
	if open > 1 {
		l.breach("%v holds %d uncommitted changes: %s", n.id, open, n.drawn())
	}
}

// settle checks that a change that a member takes for settled survives every failure: a majority of its voters would know of it
// after a crash of all members, and the members that it removes may be switched off.
func (l *laws) settle(n *node, id consensus.ConfigID) {
	if l.settled[id] {
		return
	}
	l.settled[id] = true
	at := int(id.Index) - int(n.logBase) - 1
	if at < 0 || at >= len(n.log) {
		return // it came in a snapshot
	}
	change, ok := configOf(&n.log[at])
	if !ok || aborts(n.log[at+1:]) {
		return
	}
	l.protocols[change.Protocol]++
	told := change.Protocol == consensus.ProtocolApply || (change.Protocol == consensus.ProtocolActivate && change.Config.IsJoint())
	config := change.Config.Settle()
	know := 0
	for _, voter := range config.Voters {
		v := n.c.node(voter)
		s := v.restored().Status()
		if s.Commit >= id.Index || (!told && v.holdsOnDisk(id)) {
			know++
		}
	}
	if know < quorum.Majority(len(config.Voters)) {
		l.breach("%v takes config %v for settled, which %d of voters %v would know after a crash", n.id, id, know, config.Voters)
	}
	for _, gone := range change.Tombs {
		l.retired[gone] = true
	}
}

// aborts reports whether the next change in a log undoes the one before it.
func aborts(log []entry) bool {
	for i := range log {
		if change, ok := configOf(&log[i]); ok {
			return change.Abort
		}
	}
	return false
}

func (n *node) holdsOnDisk(id consensus.ConfigID) bool {
	at := int(id.Index) - int(n.disk.base.Position.Index) - 1
	if at < 0 {
		return true
	}
	return at < len(n.disk.entries) && n.disk.entries[at].Term == id.Term
}

// claim is a configuration by which a member could decide something now, and the members that would support it.
type claim struct {
	by       memberID
	sets     [][]memberID
	supports []memberID
	leads    bool
}

// intersections checks that no two members could each gather a quorum apart from the other's: two candidates their votes, or a
// leader its acknowledgements beside the votes for its successor, whose log would lack what it commits. The configurations that
// they count by may differ; the quorums of those that can win must intersect.
func (l *laws) intersections(c *cluster) {
	var claims []claim
	for _, n := range c.nodes {
		if x, ok := n.claim(); ok {
			claims = append(claims, x)
		}
	}
	for i := range claims {
		for j := range claims[:i] {
			a, b := &claims[i], &claims[j]
			if a.leads && b.leads {
				continue // of different terms: only the votes for the later one matter, and they were checked then
			}
			if apart(a, b) {
				l.breach("%v, by %v of %v, and %v, by %v of %v, could both get a quorum",
					a.by, a.sets, a.supports, b.by, b.sets, b.supports)
			}
		}
	}
}

// claim returns the quorum that n could gather: for a leader, the members of no higher term, which acknowledge; for another
// member that may campaign, the members with no better log, which vote for it.
func (n *node) claim() (claim, bool) {
	if n.replica == nil || n.off {
		return claim{}, false
	}
	s := n.replica.Status()
	x := claim{by: n.id, sets: [][]memberID{s.Config.Voters}, leads: s.Role == raft.Leader}
	if s.Config.IsJoint() {
		x.sets = append(x.sets, s.Config.Outgoing)
	}
	if len(s.Config.Voters) == 0 || s.Removed || (!x.leads && n.mustApplyFirst(&s)) {
		return claim{}, false
	}
	for _, other := range n.c.nodes {
		if other.off {
			continue
		}
		term, last := other.disk.hard.Term, other.disk.base.Position
		if len(other.disk.entries) > 0 {
			last = other.disk.entries[len(other.disk.entries)-1].Position()
		}
		if other.replica != nil {
			now := other.replica.Status()
			term, last = now.Term, position{Index: now.LastIndex, Term: now.LastTerm}
		}
		if (x.leads && term <= s.Term) || (!x.leads && !(position{Index: s.LastIndex, Term: s.LastTerm}).Before(last)) {
			x.supports = append(x.supports, other.id)
		}
	}
	for _, set := range x.sets {
		if len(both(set, x.supports)) < quorum.Majority(len(set)) {
			return claim{}, false
		}
	}
	return x, true
}

// mustApplyFirst reports whether n knows of a committed change by protocol apply that it has not applied.
func (n *node) mustApplyFirst(s *raft.Status) bool {
	for i := range n.log {
		e := &n.log[i]
		change, ok := configOf(e)
		if ok && change.Protocol == consensus.ProtocolApply && e.Index > s.Applied && e.Index <= s.Commit {
			return true
		}
	}
	return false
}

func both(a, b []memberID) []memberID {
	var out []memberID
	for _, id := range a {
		if slices.Contains(b, id) {
			out = append(out, id)
		}
	}
	return out
}

// apart reports whether two claims have quorums without a common member.
func apart(a, b *claim) bool {
	for _, x := range a.sets {
		for _, y := range b.sets {
			if slices.Equal(x, y) {
				return false // two majorities of one set intersect
			}
		}
	}
	// The worst case for b is that a takes no more than it needs: try every quorum of a.
	for pick := range 1 << len(a.supports) {
		var mine, rest []memberID
		for i, id := range a.supports {
			if pick>>i&1 == 1 {
				mine = append(mine, id)
			}
		}
		for _, id := range b.supports {
			if !slices.Contains(mine, id) {
				rest = append(rest, id)
			}
		}
		if decides(a.sets, mine) && decides(b.sets, rest) {
			return true
		}
	}
	return false
}

func decides(sets [][]memberID, by []memberID) bool {
	for _, set := range sets {
		if len(both(set, by)) < quorum.Majority(len(set)) {
			return false
		}
	}
	return true
}

// meet reports whether any two quorums of a and b intersect, whichever members support them.
func meet(a, b *consensus.Config) bool {
	sets := func(c *consensus.Config) claim {
		x := claim{sets: [][]memberID{c.Voters}, supports: c.IDs()}
		if c.IsJoint() {
			x.sets = append(x.sets, c.Outgoing)
		}
		return x
	}
	x, y := sets(a), sets(b)
	return !apart(&x, &y)
}
