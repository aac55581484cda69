package member_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

func relocate(n *node, url string) *membership.Spec {
	return &membership.Spec{Update: []consensus.Member{{ID: n.id, PeerURLs: []string{url}}}}
}

// nowhere returns a URL at which no process listens.
func nowhere(t *testing.T) string {
	t.Helper()
	return "http://" + testnet.Address(t)
}

// move makes a stopped node listen at another address.
func (n *node) move() {
	n.c.t.Helper()
	elsewhere := n.c.reserve()
	n.addr, n.listen, elsewhere.listen = elsewhere.addr, elsewhere.listen, nil
	n.c.nodes = slices.DeleteFunc(n.c.nodes, func(other *node) bool { return other == elsewhere })
}

// restartAll stops all members and starts them again, so that they must find each other by the addresses in their logs.
func (c *cluster) restartAll() {
	c.t.Helper()
	for _, n := range c.nodes {
		n.stop()
	}
	for _, n := range c.nodes {
		n.start()
	}
	c.put(c.leader(), "again")
}

// A job puts no peer URL into the configuration at which the member does not answer, unless the request forces it. If it does,
// the members find each other all the same, also after a restart of all of them.
func TestMember_StartJob_unreachableURL(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	first, second := c.others(leader)[0], c.others(leader)[1]
	var blocked *membership.BlockedError
	for _, url := range []string{nowhere(t), second.url()} {
		wrong := relocate(first, url)
		if _, err := leader.StartJob(c.ctx, 0, wrong); !errors.As(err, &blocked) || !strings.Contains(err.Error(), url) {
			t.Errorf("%s: %v", url, err)
		}
		if plan, err := second.Plan(c.ctx, wrong); err != nil || len(plan.Blockers) == 0 {
			t.Errorf("the plan of %s: %+v, %v", url, plan, err)
		}
	}
	insists := &membership.Spec{Force: "they move tonight"}
	for _, n := range []*node{first, second} {
		insists.Update = append(insists.Update, relocate(n, nowhere(t)).Update...)
	}
	job, err := leader.StartJob(c.ctx, 0, insists)
	if err != nil {
		t.Fatal(err)
	}
	c.await("the end of the job", inState(job.ID, membership.StateDone), c.running()...)
	for _, n := range []*node{first, second} {
		config := leader.config()
		if known, _ := config.Member(n.id); !slices.Equal(known.FormerURLs, []string{n.url()}) {
			t.Errorf("member %v was at %v, want %s", n.id, known.FormerURLs, n.url())
		}
	}
	c.restartAll()
}

// etcd's MemberUpdate may change a member's URL before the member moves, for one member at a time: the other members must be a
// quorum without it.
func TestMember_ChangeConfig_unreachableURL(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	foreign := startCluster(t, 1).leader()
	first, second := c.others(leader)[0], c.others(leader)[1]
	if first.id == foreign.id { // foreign would pass for first: clusters of tests have one id
		first, second = second, first
	}
	update := func(n *node, url string) error {
		_, err := second.ChangeConfig(c.ctx, consensus.ChangeOne(consensus.ChangeUpdate,
			consensus.Member{ID: n.id, PeerURLs: []string{url}}))
		return err
	}
	var address *membership.AddressError
	if err := update(first, foreign.url()); !errors.As(err, &address) || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("an address of another cluster: %v", err)
	}
	first.stop()
	first.move()
	if err := update(first, first.url()); err != nil {
		t.Fatal(err)
	}
	if err := update(second, nowhere(t)); !errors.As(err, &address) {
		t.Errorf("another one before the first is found: %v", err)
	}
	first.start()
	c.await("the first being found", func(n *node) bool {
		config := n.config()
		known, _ := config.Member(first.id)
		return len(known.FormerURLs) == 0 && slices.Equal(known.PeerURLs, []string{first.url()})
	}, leader, second)
	c.restartAll()
}

// A member that is restarted at another address announces it, and the others find it there without a request by an operator.
func TestMember_Start_moved(t *testing.T) {
	c := startCluster(t, 3)
	moved := c.others(c.leader())[0]
	moved.stop()
	moved.move()
	moved.urls = []string{moved.url()}
	moved.start()
	c.await("the new address", func(n *node) bool {
		config := n.config()
		known, _ := config.Member(moved.id)
		return slices.Equal(known.PeerURLs, moved.urls)
	}, c.running()...)
	c.together()
	c.restartAll()
	if got := moved.config(); len(got.Voters) != 3 {
		t.Errorf("the configuration is %+v", got)
	}
}
