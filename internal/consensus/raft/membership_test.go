package raft_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

var allProtocols = []consensus.Protocol{
	consensus.ProtocolAuto, consensus.ProtocolSingle, consensus.ProtocolJoint, consensus.ProtocolJointEarly,
	consensus.ProtocolActivate, consensus.ProtocolApply,
}

// fleet is a cluster that changes its size while clients write.
type fleet struct {
	*cluster
	t        *testing.T
	laws     *laws
	protocol consensus.Protocol
	newest   memberID
	writes   int
	sent     map[uint64]string       // by proposal
	refused  consensus.RefusalReason // of the last change
	stale    int                     // writes whose proposer knew another configuration
}

func newFleet(t *testing.T, protocol consensus.Protocol) *fleet {
	f := &fleet{cluster: newCluster([]memberID{1}, nil, nil), t: t, laws: newLaws(), protocol: protocol, newest: 1}
	f.sent = map[uint64]string{}
	f.laws.watch(f.cluster)
	f.elect(1)
	return f
}

func (f *fleet) voters() []memberID {
	config := f.settledConfig()
	return config.Voters
}

// settledConfig waits until a change has settled, and checks the laws on the way.
func (f *fleet) settledConfig() consensus.Config {
	f.t.Helper()
	for range 100 {
		f.write()
		f.tick(1)
		f.resend()
		f.laws.matching(f.cluster)
		f.laws.intersections(f.cluster)
		if f.laws.broken != "" {
			f.t.Fatal(f.laws.broken)
		}
		leader := f.leader()
		if leader == nil {
			continue
		}
		s := leader.replica.Status()
		last := leader.rules(&raft.Status{Commit: s.LastIndex, Applied: s.LastIndex})
		if s.ConfigSettled && s.ConfigID == last && s.TermStarted {
			for id := range f.laws.retired {
				f.node(id).crash() // switched off as soon as it may be
				f.node(id).off = true
			}
			return s.Config
		}
	}
	f.t.Fatalf("a change by %v is not settled after 100 ticks", f.protocol)
	return consensus.Config{}
}

// write proposes a command at a member that follows the leader.
func (f *fleet) write() {
	leader := f.leader()
	if leader == nil {
		return
	}
	voters := leader.replica.Status().Config.Voters
	n := f.node(voters[f.writes%len(voters)])
	if n.replica == nil || n.replica.Leader() != leader.id {
		n = leader
	}
	f.writes++
	f.sent[f.nextSeq+1] = fmt.Sprint("w", f.writes)
	f.propose(n.id, f.sent[f.nextSeq+1])
}

// resend proposes refused commands again, as the shell does: they are in no log.
func (f *fleet) resend() {
	for _, n := range f.nodes {
		refused := n.refusals
		n.refusals = nil
		for i := range refused {
			command, ok := f.sent[refused[i].ID.Sequence]
			if !ok {
				f.refused = refused[i].Reason
				continue
			}
			if refused[i].Reason == consensus.ReasonStaleConfig {
				f.stale++
			}
			if leader := f.leader(); leader != nil {
				f.sent[f.nextSeq+1] = command
				f.propose(leader.id, command)
			}
		}
	}
}

// try asks the leader for steps, between writes, and returns the reason of a refusal.
func (f *fleet) try(steps ...consensus.ChangeStep) consensus.RefusalReason {
	leader := f.leader()
	f.refused = consensus.ReasonNone
	f.write()
	request := consensus.ChangeRequest{Steps: steps, Protocol: f.protocol}
	f.request(leader.id, request)
	f.write()
	f.settle()
	config := f.settledConfig()
	if f.refused != consensus.ReasonNone {
		return f.refused
	}
	for _, s := range steps {
		ok := map[consensus.ChangeKind]bool{
			consensus.ChangeAddLearner: config.IsLearner(s.Member.ID), consensus.ChangePromote: config.IsVoter(s.Member.ID),
			consensus.ChangeRemove: !config.Contains(s.Member.ID), consensus.ChangeDemote: config.IsLearner(s.Member.ID),
		}[s.Kind]
		if !ok {
			f.t.Fatalf("%v of %v by %v: not so in %s", s.Kind, s.Member.ID, f.protocol, describeConfig(&config))
		}
	}
	return consensus.ReasonNone
}

// must makes steps at once or, where the protocol cannot, one by one.
func (f *fleet) must(steps ...consensus.ChangeStep) {
	f.t.Helper()
	reason := f.try(steps...)
	if reason == consensus.ReasonNone {
		return
	}
	alone := f.protocol == consensus.ProtocolApply && len(f.voters()) == 2
	switch {
	case reason == consensus.ReasonProtocol && f.protocol == consensus.ProtocolSingle && len(steps) > 1:
		for _, s := range steps {
			f.must(s)
		}
	case reason == consensus.ReasonProtocol && alone:
		f.protocol = consensus.ProtocolSingle
		f.must(steps...)
		f.protocol = consensus.ProtocolApply
	default:
		f.t.Fatalf("%v %v: refused: reason %d", f.protocol, steps, reason)
	}
}

// learners adds members that hold everything and have no vote yet.
func (f *fleet) learners(count int) []memberID {
	var ids []memberID
	var steps []consensus.ChangeStep
	for range count {
		f.newest++
		ids = append(ids, f.newest)
		f.add(f.newest, consensus.Config{})
		steps = append(steps, consensus.ChangeStep{Kind: consensus.ChangeAddLearner, Member: testMember(f.newest)})
	}
	f.must(steps...)
	f.tick(3)
	return ids
}

func steps(kind consensus.ChangeKind, ids ...memberID) []consensus.ChangeStep {
	var out []consensus.ChangeStep
	for _, id := range ids {
		out = append(out, consensus.ChangeStep{Kind: kind, Member: consensus.Member{ID: id}})
	}
	return out
}

// resize makes the cluster have n voters, by one change if the protocol can. Every other time it removes the leader, too.
func (f *fleet) resize(n int) {
	f.t.Helper()
	voters := f.voters()
	if n > len(voters) {
		f.must(steps(consensus.ChangePromote, f.learners(n-len(voters))...)...)
	} else {
		leader := f.leader().id
		at := slices.Index(voters, leader)
		if at > 0 && n%2 == 0 {
			voters = slices.Concat([]memberID{leader}, voters[:at], voters[at+1:])
		} else {
			voters = slices.Concat(voters[:max(at, 0)], voters[at+1:], []memberID{leader})
		}
		f.must(steps(consensus.ChangeRemove, voters[:len(voters)-n]...)...)
	}
	if got := len(f.voters()); got != n {
		f.t.Fatalf("%v: %d voters, want %d", f.protocol, got, n)
	}
}

// Ensure that every protocol takes a cluster of any size to any other, one voter at a time and in jumps, while clients write,
// the leader is removed, and members that may be switched off are.
func TestReplica_ChangeConfig_sizes(t *testing.T) {
	for _, protocol := range allProtocols {
		t.Run(protocol.String(), func(t *testing.T) {
			f := newFleet(t, protocol)
			for _, n := range []int{2, 3, 4, 5, 6, 7, 6, 5, 4, 3, 2, 1} {
				f.resize(n)
			}
			for _, n := range []int{3, 5, 7, 4, 2, 3} {
				f.resize(n)
			}
			old := f.voters()
			next := f.learners(3)
			f.must(append(steps(consensus.ChangePromote, next...), steps(consensus.ChangeRemove, old...)...)...)
			if got := f.voters(); !slices.Equal(got, next) {
				t.Fatalf("voters %v, want %v", got, next)
			}
			// From voter to learner and back, the leader among them.
			f.must(steps(consensus.ChangeDemote, next[:2]...)...)
			f.must(steps(consensus.ChangePromote, next[:2]...)...)
			f.check1to1(next)
		})
	}
}

// check1to1 checks that all members have applied the same commands, and all that were proposed.
func (f *fleet) check1to1(ids []memberID) {
	f.t.Helper()
	f.tick(5)
	f.resend()
	f.tick(5)
	want := f.leader().store.commands
	for _, id := range ids {
		if got := f.node(id).store.commands; !slices.Equal(got, want) {
			f.t.Errorf("%v applied %d commands, the leader %d", id, len(got), len(want))
		}
	}
	if len(want) < f.writes {
		f.t.Errorf("%d of %d writes applied", len(want), f.writes)
	}
	f.t.Logf("%d of %d writes applied, %d sent again, changes %v", len(want), f.writes, f.stale, f.laws.protocols)
}
