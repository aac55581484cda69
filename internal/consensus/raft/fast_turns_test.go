package raft_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// turn is a schedule written by hand, for a rule whose absence shows only after a certain turn of events. Nothing arrives
// but what the turn says. Member 1 leads at first; its no-op is entry 2.
type turn struct {
	*cluster
	t    *testing.T
	laws *fastLaws
	ids  []string
	kept []message // answers of the leader that are late
	late bool
}

func newTurn(t *testing.T, voters int, faults raft.FastFaults, shell shellFaults) *turn {
	var ids []memberID
	for id := range voters {
		ids = append(ids, memberID(id+1))
	}
	c := newCluster(ids, nil, func(o *raft.Options) {
		o.ElectionTicks, o.PreVote, o.CheckQuorum, o.StrictReconfig = 1000, false, false, false
		o.MaxMessageBytes = 1
		o.Fast.Footprint, o.Faults.Fast = footprintOf, faults
	})
	c.shell = shell
	x := &turn{cluster: c, t: t, laws: newFastLaws(c)}
	c.trace = &strings.Builder{}
	c.elect(1)
	x.give(1, ids[1:]...)
	return x
}

func (x *turn) proposal(name, on string) consensus.Proposal {
	at := slices.Index(x.ids, name)
	if at < 0 {
		x.ids, at = append(x.ids, name), len(x.ids)
	}
	p := proposalOf(uint64(at+1), on+"="+name)
	x.laws.invoke(p.ID)
	return p
}

// fast proposes to all voters; those who heard it answer.
func (x *turn) fast(name, on string, via memberID, heard ...memberID) {
	x.printf("--- %s on %q through %v, heard by %v", name, on, via, heard)
	x.node(via).step(raft.Propose{Proposals: []consensus.Proposal{x.proposal(name, on)}, Fast: true})
	for range 4 {
		net := x.net
		x.net = nil
		for _, m := range net {
			asks := m.Kind == consensus.MsgRecord || m.Kind == consensus.MsgFastPropose
			switch {
			case m.Kind == consensus.MsgFast && x.late:
				x.kept = append(x.kept, m)
			case isFast(&m) && (!asks || slices.Contains(heard, m.To)):
				x.deliver(m)
			}
		}
		for _, n := range x.nodes {
			for n.drain() {
			}
		}
	}
	x.net = nil
}

// slow logs a proposal on the leader, and nowhere else.
func (x *turn) slow(name, on string, leader memberID) {
	x.printf("--- %s on %q logged by %v", name, on, leader)
	x.node(leader).step(raft.Propose{Proposals: []consensus.Proposal{x.proposal(name, on)}})
	for x.node(leader).drain() {
	}
	x.net = nil
}

// leads makes a member lead with the votes of others; its entries reach nobody.
func (x *turn) leads(id memberID, votes ...memberID) {
	if !x.campaigns(6, id, votes...) {
		x.t.Fatalf("member %v does not lead:\n%s", id, x.trace)
	}
}

// campaigns lets a member try so many times.
func (x *turn) campaigns(times int, id memberID, votes ...memberID) bool {
	x.printf("--- %v leads with the votes of %v", id, votes)
	for range times {
		if leadsNow(x.node(id)) {
			return true
		}
		x.node(id).step(raft.Campaign{})
		for range 4 {
			net := x.net
			x.net = nil
			for _, m := range net {
				if isVote(&m) && (slices.Contains(votes, m.From) || m.From == id) && (slices.Contains(votes, m.To) || m.To == id) {
					x.deliver(m)
				}
			}
			for _, n := range x.nodes {
				for n.drain() {
				}
			}
		}
		x.net = nil
	}
	return leadsNow(x.node(id))
}

// pass lets a leader and some members talk of the log, as far as adapt lets it; it may change a message.
func (x *turn) pass(leader memberID, to []memberID, adapt func(m *message) bool) {
	for range 8 {
		x.passOnce(leader, to, adapt)
	}
}

func (x *turn) passOnce(leader memberID, to []memberID, adapt func(m *message) bool) {
	x.node(leader).step(raft.Tick{})
	for range 4 {
		net := x.net
		x.net = nil
		for _, m := range net {
			pair := m.From == leader && slices.Contains(to, m.To) || m.To == leader && slices.Contains(to, m.From)
			if pair && isLog(&m) && adapt(&m) {
				x.deliver(m)
			}
		}
		for _, n := range x.nodes {
			for n.drain() {
			}
		}
	}
	x.net = nil
}

// give brings members in line with a leader, and tells them what has committed.
func (x *turn) give(leader memberID, to ...memberID) {
	x.printf("--- %v gives its log to %v", leader, to)
	x.pass(leader, to, func(*message) bool { return true })
}

// giveUpTo gives no entry after index, nor any word of commits unless told.
func (x *turn) giveUpTo(index consensus.Index, told bool, leader memberID, to ...memberID) {
	x.printf("--- %v gives its log up to %d to %v", leader, index, to)
	x.pass(leader, to, func(m *message) bool {
		if !told {
			m.Commit = 0
		}
		return len(m.Entries) == 0 || m.Entries[len(m.Entries)-1].Index <= index
	})
}

// tell makes the term of a leader known, and nothing of its log.
func (x *turn) tell(leader memberID, to ...memberID) {
	x.printf("--- %v tells %v of its term", leader, to)
	x.pass(leader, to, func(m *message) bool {
		m.Entries, m.Commit = nil, 0
		return m.From == leader
	})
}

// falls stops a member for a moment: what its disk does not hold is lost.
func (x *turn) falls(id memberID) {
	x.printf("--- %v falls", id)
	n := x.node(id)
	n.crash()
	n.slowDisk = false
	n.start()
}

func (x *turn) arrives() {
	kept := x.kept
	x.kept, x.late = nil, false
	for _, m := range kept {
		x.deliver(m)
	}
}

// play returns the law that a turn breaks.
func play(t *testing.T, f *fastFault, broken bool) string {
	var faults raft.FastFaults
	var shell shellFaults
	if broken {
		shell = f.shell
		if f.set != nil {
			f.set(&faults)
		}
	}
	x := newTurn(t, f.voters, faults, shell)
	f.turn(x)
	if x.laws.broken == "" {
		x.laws.same()
	}
	if x.laws.broken == "" && broken || x.laws.broken != "" && !broken {
		t.Logf("%s", x.trace)
	}
	return x.laws.broken
}

// keysHeld: the voters hold Q before P on one key, and the leader knows of P alone.
func keysHeld(x *turn) {
	x.fast("X", "b", 2, 1)
	x.fast("Q", "a", 2, 2, 3)
	x.fast("P", "a", 2, 1, 2, 3)
	x.leads(2, 3)
	x.give(2, 3)
}

// orderLogged: member 1 has an answer of its own at revision 1 in its log, and holds another proposal at 1.
func orderLogged(x *turn) {
	x.fast("O", "a", 2, 1, 2)
	x.leads(3, 2, 4)
	x.give(3, 2, 4)
	x.tell(3, 1)
	x.fast("W", "c", 4, 3, 4, 1)
	x.leads(4, 2, 1)
	x.give(4, 2, 1)
}

// recordLost: member 3 answers and falls.
func recordLost(x *turn) {
	x.node(3).slowDisk = true
	x.fast("W", "a", 2, 1, 2, 3)
	x.falls(3)
	x.leads(2, 3)
	x.give(2, 3)
}

// leaderPool is the beginning of two turns: member 2 holds P0 at 2, as does member 1, and leads with the votes of 3 and 4,
// who hold P1 at 1.
func leaderPool(x *turn) {
	x.fast("R", "d", 3, 2)
	x.slow("Y", "c", 1)
	x.fast("P0", "a", 3, 1, 2)
	x.leads(2, 3, 4)
	x.give(2, 3, 4)
	x.fast("P1", "b", 3, 3, 4)
}

// leaderPoolKeys: P2 on the key of P0 succeeds at 3. Another leader takes it out of the log of member 2, which then leads
// with the votes of 1 and 4: P0 comes first.
func leaderPoolKeys(x *turn) {
	leaderPool(x)
	x.fast("P1'", "e", 3, 3, 4)
	x.slow("Z1", "f", 2)
	x.slow("Z2", "g", 2)
	x.fast("P2", "a", 3, 2, 3, 4)
	x.leads(3, 4, 1)
	x.giveUpTo(4, false, 3, 2)
	x.leads(2, 1, 4)
	x.give(2, 1, 4)
}

// leaderPoolOrder is the same with P2 on another key, at the revision of P0.
func leaderPoolOrder(x *turn) {
	leaderPool(x)
	x.slow("Z1", "f", 2)
	x.fast("P2", "h", 3, 2, 3, 4)
	x.leads(3, 4, 1)
	x.giveUpTo(4, false, 3, 2)
	x.leads(2, 1, 4)
	x.give(2, 1, 4)
}

// known: a proposal that touches nothing is logged, and answered at another revision.
func known(x *turn) {
	x.slow("P", "-", 1)
	x.fast("A", "b", 2, 2, 3)
	x.fast("P", "-", 2, 1, 2, 3)
	x.give(1, 2, 3)
}

// openTooSoon: member 4 alone has Y of the first term. While no entry of the second has committed, it may lead the third,
// and Y takes the revision of W.
func openTooSoon(x *turn) {
	x.node(1).slowDisk = true
	x.slow("Y", "a", 1)
	x.giveUpTo(3, false, 1, 4)
	x.falls(1)
	x.leads(2, 1, 3)
	x.tell(2, 1, 3)
	x.fast("W", "b", 3, 2, 3, 1)
	x.leads(4, 1, 3)
	x.give(4, 1, 3)
}

// ownAnswer: W succeeded on all three. Its first leader is one of the two that hold it when member 2 leads.
func ownAnswer(x *turn, truncated bool) {
	x.slow("X", "c", 1)
	x.fast("A", "b", 2, 2, 3)
	x.fast("W", "a", 2, 1, 2, 3)
	x.leads(3, 2)
	x.giveUpTo(3, false, 3, 2)
	if truncated {
		x.giveUpTo(3, false, 3, 1)
	}
	x.leads(2, 1)
	x.give(2, 1)
}

// passedOver: P at revision 1 is recovered by member 2 and passed over; then it succeeds at 2, also on member 4, which has yet to
// see the first attempt.
func passedOver(x *turn) {
	x.fast("P", "a", 3, 2, 3)
	x.slow("Z", "b", 1)
	x.give(1, 2, 3, 4)
	x.leads(2, 1, 3)
	x.give(2, 1, 3)
	x.tell(2, 4)
	x.fast("P", "a", 4, 2, 4, 1)
}

func passedOverForgets(x *turn) {
	passedOver(x)
	x.giveUpTo(5, true, 2, 4)
	x.leads(4, 1, 3)
	x.give(4, 1, 3)
}

func passedOverLogged(x *turn) {
	x.node(4).holdApply = true
	x.node(4).step(raft.Tick{})
	passedOver(x)
	x.giveUpTo(5, false, 2, 4)
	x.leads(4, 1, 3)
	x.give(4, 1, 3)
}

// otherAttempts: member 4 holds P at 1, where it succeeded at 2.
func otherAttempts(x *turn) {
	x.fast("A", "b", 2, 2, 3)
	x.slow("Z", "c", 1)
	x.fast("P", "a", 2, 1, 2, 3, 4)
	x.leads(4, 2, 3)
	x.give(4, 2, 3)
}

// tooFew: member 5 alone holds O.
func tooFew(x *turn) {
	x.fast("O", "a", 2, 5)
	x.fast("W", "a", 2, 1, 2, 3, 4)
	x.leads(2, 3, 5)
	x.give(2, 3, 5)
}

// mixed: the leader of the first term answers, the voters of the second hold; the leader of the second knows nothing of it.
func mixed(x *turn) {
	x.late = true
	x.fast("P", "a", 2, 1)
	x.leads(3, 4, 5)
	x.give(3, 4, 5)
	x.tell(3, 2)
	x.slow("Q", "a", 3)
	x.fast("P", "a", 2, 2, 4, 5)
	x.arrives()
	x.give(3, 4, 5)
}

// changing: W succeeds under the first configuration while the leader has logged the second, under which member 4 leads.
func changing(x *turn) {
	x.node(1).holdApply = true
	x.request(1, consensus.ChangeRequest{
		Protocol: consensus.ProtocolApply, Steps: []consensus.ChangeStep{{Kind: consensus.ChangeRemove, Member: consensus.Member{ID: 3}}},
	})
	x.giveUpTo(3, false, 1, 2, 4)
	x.fast("W", "a", 3, 1, 2, 3)
	x.giveUpTo(3, true, 1, 2, 4)
	x.leads(4, 2)
	x.give(4, 2)
}

// forgottenAtAppend: member 2 logs W, and the next leader takes it out of its log.
func forgottenAtAppend(x *turn) {
	x.slow("X", "c", 1)
	x.fast("A", "b", 2, 2, 3, 4)
	x.fast("W", "a", 2, 1, 2, 3, 4)
	x.giveUpTo(4, false, 1, 2)
	x.leads(3, 4, 5)
	x.giveUpTo(3, false, 3, 2)
	x.leads(2, 1, 5)
	x.give(2, 1, 5)
}

// lateReply: the leader answers when it has applied the entry.
func lateReply(x *turn) {
	x.node(1).slowReply = true
	x.fast("W", "a", 2, 1, 2, 3)
	x.give(1, 3)
	x.node(1).slowReply = false
	x.node(1).reply()
	x.settle()
	x.give(1, 2, 3)
}

// replyLost: the leader answers and falls.
func replyLost(x *turn) {
	x.node(1).slowDisk = true
	x.fast("W", "a", 2, 1, 2, 3)
	x.falls(1)
	x.leads(2, 1)
	x.give(2, 1)
}

// bumped: O, whose revision is taken, takes that of W.
func bumped(x *turn) {
	x.fast("O", "a", 2, 2, 3)
	x.slow("Z", "b", 1)
	x.give(1, 2, 3)
	x.tick(501) // half an election timeout: nobody expects O any more
	x.fast("W", "c", 2, 1, 2, 3)
	x.leads(2, 3)
	x.give(2, 3)
}
