package member_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

// quickCare is a policy that acts without delay.
func quickCare(mode membership.Mode) membership.Policy {
	return membership.Policy{Mode: mode, DeadAfterMS: 1000, StableMS: 500, MaxPerHour: 3}
}

// standby adds a learner that stays one.
func (c *cluster) standby() *node {
	c.t.Helper()
	n := c.reserve()
	job, err := c.leader().StartJob(c.ctx, 0, &membership.Spec{
		Add: []membership.Newcomer{{Name: "standby", PeerURLs: []string{n.url()}, Learner: true}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	id := job.Spec.Add[0].ID
	c.await("the standby", func(n *node) bool { config := n.config(); return config.IsLearner(id) }, c.leader())
	n.launch(id)
	c.publish(n, "standby")
	c.await("the end of the job", inState(job.ID, membership.StateDone), c.running()...)
	return n
}

// advised waits until the leader gives this advice.
func (c *cluster) advised(text string) {
	c.t.Helper()
	c.await("the advice that "+text, func(*node) bool {
		return slices.ContainsFunc(c.running(), func(n *node) bool { return strings.Contains(n.Advice(), text) })
	}, c.running()[0])
}

// calm waits until the leader has no advice.
func (c *cluster) calm() {
	c.t.Helper()
	c.await("calm", func(*node) bool {
		return !slices.ContainsFunc(c.running(), func(n *node) bool { return n.Advice() != "" })
	}, c.running()[0])
}

// voting is met when a node has applied a configuration with exactly these voters and no change is under way.
func voting(nodes ...*node) func(*node) bool {
	var want []consensus.MemberID
	for _, n := range nodes {
		want = append(want, n.id)
	}
	slices.Sort(want)
	return func(n *node) bool {
		config := n.config()
		return slices.Equal(config.Voters, want) && !config.IsJoint()
	}
}

// A voter dies, and the standby replaces it for ever without a request. Then there is no other standby, and nothing happens any
// more.
func TestMember_careForMembers_swapsTheDead(t *testing.T) {
	c := startCared(t, 3, quickCare(membership.ModeAuto))
	standby := c.standby()
	leader := c.leader()
	voters := c.others(leader, standby)
	dead, other := voters[0], voters[1]
	dead.stop()
	c.await("the swap", voting(leader, other, standby), leader, other, standby)
	c.await("the tombstone", func(n *node) bool {
		machine, release := n.Machine()
		defer release()
		_, removed := machine.Removed(dead.id)
		return removed
	}, leader, other, standby)
	c.put(other, "k")
	c.calm()
	if jobs := other.Jobs(); len(jobs) != 2 || jobs[1].State == membership.StateFailed {
		t.Errorf("got jobs %+v, want one that adds and one that swaps", jobs)
	}
	other.stop()
	c.advised("there is no standby learner")
	c.put(standby, "l")
}

// Two voters fall silent at once, as behind a broken switch: the leader still has its quorum, and replaces neither. When one of
// them is back, the other one counts as dead.
func TestMember_careForMembers_suspectsTheNetwork(t *testing.T) {
	c := startCared(t, 5, quickCare(membership.ModeAuto))
	standby := c.standby()
	leader := c.leader()
	voters := c.others(leader, standby)
	for _, n := range voters[:2] {
		n.stop()
	}
	c.advised("are silent at once")
	before := leader.config()
	c.put(voters[2], "k")
	if now := leader.config(); len(leader.Jobs()) != 1 || !slices.Equal(now.Voters, before.Voters) || len(now.Voters) != 5 {
		t.Errorf("voters %v after jobs %+v", now.Voters, leader.Jobs())
	}
	voters[1].start()
	c.await("the swap", voting(leader, standby, voters[1], voters[2], voters[3]), c.running()...)
	if jobs := standby.Jobs(); len(jobs) != 2 {
		t.Errorf("got jobs %+v, want one that adds and one that swaps", jobs)
	}
}

// Under a policy that only suggests, the leader says what it would do, and does nothing.
func TestMember_Advice_suggests(t *testing.T) {
	c := startCared(t, 3, quickCare(membership.ModeSuggest))
	leader := c.leader()
	dead := c.others(leader)[0]
	dead.stop()
	c.advised("there is no standby learner to take its place")
	standby := c.standby()
	c.advised("can take its place: `quorate member replace ")
	if jobs := leader.Jobs(); len(jobs) != 1 || !standby.Learner() || len(leader.config().Voters) != 3 {
		t.Errorf("something was done: %+v", jobs)
	}
	for _, n := range c.others(c.leader()) {
		if got := n.Advice(); got != "" {
			t.Errorf("%v does not lead, and advises %q", n.id, got)
		}
	}
	dead.start()
	c.calm()
}

// The leader shows the zones that members publish, and warns about them.
func TestMember_View_zones(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	for _, n := range c.running() {
		result, err := leader.Propose(c.ctx, &kv.Command{Publish: &kv.PublishOp{Member: uint64(n.id), Name: "n", Zone: "r" + n.id.String()}})
		if err != nil || result.Err != nil {
			t.Fatal(err, result.Err)
		}
	}
	view, _, err := leader.DescribeCluster(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range view.Members {
		if want := "r" + m.ID.String(); m.Zone != want {
			t.Errorf("member %v is in zone %q, want %q", m.ID, m.Zone, want)
		}
	}
}
