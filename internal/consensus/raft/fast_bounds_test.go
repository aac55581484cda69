package raft_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// offered gives a member one message of the fast path and returns its verdict on the first proposal.
func (n *node) offered(kind consensus.MessageKind, proposals ...consensus.Proposal) consensus.Verdict {
	s := n.replica.Status()
	n.c.net = nil
	n.step(raft.Receive{Message: message{Kind: kind, From: 3, To: n.id, Term: s.Term, Config: s.ConfigID, Proposals: proposals}})
	for n.drain() {
	}
	for i := range n.c.net {
		if m := &n.c.net[i]; len(m.Verdicts) > 0 && m.To == 3 {
			return m.Verdicts[0]
		}
	}
	return consensus.Verdict{Refusal: 99}
}

func newFastCluster(adapt func(o *raft.Options)) *cluster {
	c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) {
		o.Fast.Footprint, o.PreVote, o.CheckQuorum = footprintOf, false, false
		adapt(o)
	})
	c.elect(1)
	c.tick(1)
	return c
}

// Ensure that leader and voters alike refuse on the fast path a command that touches ranges, one whose proposer's sessions are
// being ended, and one whose session is not open, and that each rule is the reason.
func TestReplica_receive_refusedFast(t *testing.T) {
	many := make([]byte, 0, 200)
	for range 130 {
		many = append(many, 'a')
	}
	for _, tc := range []struct {
		name, before, command string
		strange               bool
		rule                  []rules.Rule // the rules that refuse it
		want                  consensus.Refused
	}{
		{"a single key", "", "a=1", false, nil, consensus.RefusedNot},
		{"a range", "", "%=1", false, []rules.Rule{rules.AnyWidth}, consensus.RefusedWide},
		{"many keys", "", string(many) + "=1", false, []rules.Rule{rules.AnyWidth}, consensus.RefusedWide},
		{"its session ends", "$99=1", "a=1", false, []rules.Rule{rules.SessionsCommute}, consensus.RefusedConflict},
		{"another's session ends", "$98=1", "a=1", false, nil, consensus.RefusedNot},
		{"the end of a session", "", "$98=1", false, nil, consensus.RefusedConflict},
		{"no session", "", "a=1", true, nil, consensus.RefusedNoSession},
		{"a key that is logged", "a=1", "a=2", false, []rules.Rule{rules.LeaderNoLogKeys, rules.WitnessNoLogKeys},
			consensus.RefusedConflict},
	} {
		for _, id := range []memberID{1, 2} {
			var dropped rules.Set
			for _, off := range []bool{false, true} {
				if off && tc.rule == nil {
					continue
				}
				if off {
					dropped = rules.Without(tc.rule...)
				}
				c := newFastCluster(func(o *raft.Options) { o.Dropped = dropped })
				if tc.strange {
					c.noSession(proposalOf(5, "").ID)
				}
				if tc.before != "" { // logged on both, and applied by neither
					c.node(1).holdApply, c.node(2).holdApply = true, true
					c.propose(1, tc.before)
					c.settle()
				}
				kind := map[memberID]consensus.MessageKind{1: consensus.MsgFastPropose, 2: consensus.MsgRecord}[id]
				want := tc.want
				if off {
					want = consensus.RefusedNot
				}
				if v := c.node(id).offered(kind, proposalOf(5, tc.command)); v.Refusal != want {
					t.Errorf("%s, member %v, rule off %t: %v, want %v", tc.name, id, off, v.Refusal, want)
				}
			}
		}
	}
}

// noSession makes the session of a proposal unknown to all state machines.
func (c *cluster) noSession(id consensus.ProposalID) {
	opts := c.opts
	c.opts = func(member memberID) raft.Options {
		o := opts(member)
		state := o.Fast.State
		o.Fast.State = func(asked consensus.ProposalID) fast.ProposalState {
			if asked == id { // as kv/apply: an abort leaves no result for it
				return fast.ProposalNoSession
			}
			return state(asked)
		}
		return o
	}
	for _, n := range c.nodes {
		n.crash()
		n.start()
	}
	c.elect(1)
	c.tick(1)
}

// Ensure that a record of a session which is not open, such as an earlier version may have left on the disk, is dropped once an
// abort of it is applied. Otherwise it would be held, and aborted again, for ever.
func TestReplica_forgetApplied_noSession(t *testing.T) {
	for _, broken := range []bool{false, true} {
		c := newFastCluster(func(o *raft.Options) { o.Dropped[rules.AnswerUnopened] = broken })
		p := proposalOf(5, "a=S")
		two := c.node(2)
		if v := two.offered(consensus.MsgRecord, p); v.Refusal != consensus.RefusedNot {
			t.Fatal(v.Refusal)
		}
		c.noSession(p.ID)
		c.tick(200)
		aborted := uint64(0)
		for _, n := range c.nodes {
			aborted += n.replica.FastCounts().Aborted
		}
		if held := two.replica.FastCounts().Held > 0; held != broken || (aborted > 1) != broken {
			t.Errorf("aborts decide proposals without sessions: %t; held after 20 timeouts: %t, aborted %d times", !broken, held, aborted)
		}
	}
}

// Ensure that one proposer cannot take all room for records.
func TestReplica_record_share(t *testing.T) {
	for _, broken := range []bool{false, true} {
		c := newFastCluster(func(o *raft.Options) { o.Dropped[rules.NoShares] = broken })
		two := c.node(2)
		for i := range uint64(1024) {
			if v := two.offered(consensus.MsgRecord, proposalOf(10+i, "-=1")); v.Refusal != consensus.RefusedNot {
				t.Fatalf("record %d: %v", i, v.Refusal)
			}
		}
		if v := two.offered(consensus.MsgRecord, proposalOf(5000, "-=1")); (v.Refusal == consensus.RefusedFull) == broken {
			t.Errorf("shares %t: one too many: %v", !broken, v.Refusal)
		}
		other := proposalOf(5001, "-=1")
		other.ID.Session.Member = 98
		if v := two.offered(consensus.MsgRecord, other); v.Refusal != consensus.RefusedNot {
			t.Errorf("another proposer: %v", v.Refusal)
		}
	}
}

// Ensure that an entry which takes no revision makes no gap for the proposal after it.
func TestReplica_boundOf_noRevision(t *testing.T) {
	for _, told := range []bool{true, false} {
		c := newFastCluster(func(o *raft.Options) {
			if told {
				o.Fast.Revises = changes
			}
		})
		c.node(1).holdApply = true
		c.propose(1, "~b=1", "~b=2", "c=3")
		c.settle()
		want := map[bool]uint64{true: 2, false: 4}[told]
		lead := c.node(1)
		lead.offered(consensus.MsgFastPropose, proposalOf(5, "a=1"))
		if got := lead.log[len(lead.log)-1].ExactRevision; got != want {
			t.Errorf("the leader is told what takes a revision: %t; it gives %d, want %d", told, got, want)
		}
	}
}

// Ensure that no voter asks about a proposal before its proposer had time to repeat it, after three election timeouts.
func TestReplica_askForOrphans_patience(t *testing.T) {
	c := newFastCluster(func(*raft.Options) {})
	c.node(2).offered(consensus.MsgRecord, proposalOf(5, "a=1"))
	asked := 0
	for tick := range 80 {
		for _, n := range c.nodes {
			n.step(raft.Tick{})
		}
		for i := range c.net {
			if c.net[i].Kind == consensus.MsgOrphans && asked == 0 {
				asked = tick
			}
		}
		c.settle()
	}
	if asked <= 4*10 || c.node(2).replica.FastCounts().Held != 0 {
		t.Errorf("asked after %d ticks of 10 a timeout; held: %d", asked, c.node(2).replica.FastCounts().Held)
	}
}

// Ensure that a voter without a leader asks no member about its records, and asks the next leader at its first message: a
// question that it cannot send does not count as asked.
func TestReplica_askForOrphans_withoutLeader(t *testing.T) {
	c := newFastCluster(func(*raft.Options) {})
	n := c.node(2)
	n.offered(consensus.MsgRecord, proposalOf(5, "a=1"))
	for _, other := range c.nodes {
		if other != n {
			other.crash()
		}
	}
	c.net = nil
	c.check = func(_ *node, out *raft.Output) {
		s := n.replica.Status()
		for _, list := range [][]message{out.Send, out.SendAfter} {
			for i := range list {
				if why := unfit(&list[i], &s); why != "" {
					t.Errorf("%s: %s", why, describe(&list[i]))
				}
			}
		}
	}
	for range 100 { // ten election timeouts
		n.step(raft.Tick{})
	}
	term := n.replica.Term() + 1
	n.step(raft.Receive{Message: message{Kind: consensus.MsgHeartbeat, From: 3, To: 2, Term: term, Round: 1}})
	n.drain() // the term is on disk
	c.net = nil
	n.step(raft.Tick{})
	asked := slices.ContainsFunc(c.net, func(m message) bool { return m.Kind == consensus.MsgOrphans && m.To == 3 })
	if n.replica.Leader() != 3 || !asked {
		t.Errorf("follows %v, which was asked: %t", n.replica.Leader(), asked)
	}
}

// Ensure that refusals of voters and of the leader are counted by reason: the counts show why a cluster takes the slow path.
func TestReplica_FastCounts_refused(t *testing.T) {
	for _, kind := range []consensus.MessageKind{consensus.MsgRecorded, consensus.MsgFast} {
		c := newFastCluster(func(*raft.Options) {})
		n, s := c.node(2), c.node(2).replica.Status()
		n.step(raft.Receive{Message: message{
			Kind: kind, From: s.Leader, To: 2, Term: s.Term, Config: s.ConfigID,
			// The last two are reasons that this build does not know.
			Verdicts: []consensus.Verdict{{Refusal: consensus.RefusedWide}, {Refusal: consensus.RefusedReasons}, {Refusal: 255}},
		}})
		if got := n.replica.FastCounts().Refused[consensus.RefusedWide]; got != 1 {
			t.Errorf("kind %d: %d refusals of one are counted", kind, got)
		}
	}
}

// Ensure that a voter that refuses a candidate sends it no records: it may accept others after that.
func TestReplica_handleVote_refusedWithoutRecords(t *testing.T) {
	for _, grants := range []bool{true, false} {
		c := newFastCluster(func(*raft.Options) {})
		n, s := c.node(2), c.node(2).replica.Status()
		n.offered(consensus.MsgRecord, proposalOf(5, "a=1"))
		vote := message{Kind: consensus.MsgVote, From: 3, To: 2, Term: s.Term + 1, Force: true}
		if grants {
			vote.Last = position{Index: s.LastIndex, Term: s.LastTerm}
		}
		c.net = nil
		n.step(raft.Receive{Message: vote})
		if n.drain(); len(c.net) != 1 || c.net[0].Reject == grants || (len(c.net[0].Records) == 1) != grants {
			t.Errorf("grants: %t; the answers are %+v", grants, c.net)
		}
	}
}

// Ensure that voters keep no records of a proposer which offers records and never proposes them, after a few times, for longer
// and longer, and that no other proposer suffers from it.
func TestReplica_record_blame(t *testing.T) {
	for _, broken := range []bool{false, true} {
		c := newFastCluster(func(o *raft.Options) { o.Dropped[rules.NoBlame] = broken })
		two := c.node(2)
		held, barred := 0, 0
		for i := range uint64(40) {
			switch v := two.offered(consensus.MsgRecord, proposalOf(10+i, "a=1")); v.Refusal {
			case consensus.RefusedNot:
				held++
			case consensus.RefusedFull:
				barred++
			default:
				t.Fatalf("offer %d: %v", i, v.Refusal)
			}
			c.tick(7 * c.opts(2).ElectionTicks) // until it is given up
			if n := two.replica.FastCounts().Held; n != 0 {
				t.Fatalf("offer %d: %d records are still held", i, n)
			}
		}
		if broken != (held == 40) || !broken && (held > 10 || two.replica.FastCounts().Barred != uint64(barred)) {
			t.Errorf("blame %t: held %d times, refused %d times", !broken, held, barred)
		}
		other := proposalOf(5001, "a=1")
		other.ID.Session.Member = 98
		if v := two.offered(consensus.MsgRecord, other); v.Refusal != consensus.RefusedNot {
			t.Errorf("another proposer: %v", v.Refusal)
		}
	}
}
