package member_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/transport"
)

// levelAt is the active feature level that a node has applied.
func levelAt(n *node) level.Level {
	machine, release := n.Machine()
	defer release()
	return machine.ActiveLevel()
}

// addUser sends a node a command that needs the next level.
func (c *cluster) addUser(n *node, name string) error {
	result, err := n.Propose(c.ctx, userAdd(name))
	return errors.Join(err, result.Err)
}

func userAdd(name string) *kv.Command {
	return &kv.Command{Auth: &auth.Change{Kind: auth.UserAdd, User: name, Hash: []byte("h")}}
}

// Ensure that no command of a level is applied before all members know the level, and that no request waits for it unless it
// must: members are upgraded one by one, one of them loses power in between and goes back to the earlier build, and an earlier
// build neither starts nor joins afterwards.
func TestMember_rollingUpgrade(t *testing.T) {
	c := startWith(t, 3, &cluster{build: level.Own})
	names := []string{"one", "two", "three"}
	restart := func(i int, build level.Level) {
		n := c.nodes[i]
		n.stop()
		n.build = build
		n.start()
		c.together()
		c.publish(n, names[i])
	}
	for i, n := range c.nodes {
		c.publish(n, names[i])
	}
	for upgraded := range 3 {
		for _, n := range c.nodes[:upgraded] { // through the upgraded members, which know the command
			var held *level.HeldError
			if err := c.addUser(n, "early"); !errors.As(err, &held) || held.Needs != nextlevel.Level ||
				len(held.By) != 3-upgraded || !strings.Contains(err.Error(), fmt.Sprintf("three (build test, level %d)", level.Own)) {
				t.Fatalf("%d are upgraded: %v", upgraded, err)
			}
			var needs *lanes.NeedsLevelError
			if _, err := n.ProposeAsync(userAdd("early"), nil); !errors.As(err, &needs) || n.PromptFor(userAdd("early")) ||
				!n.PromptFor(&kv.Command{Put: &kv.PutOp{Key: []byte("k")}}) {
				t.Fatalf("%d are upgraded: an asynchronous proposal: %v; a put waits, or this does not", upgraded, err)
			}
			c.put(n, "k")
		}
		restart(upgraded, nextlevel.Level)
		if upgraded == 1 { // down and up once more
			restart(0, level.Own)
			restart(0, nextlevel.Level)
		}
	}
	c.await("the policy", func(n *node) bool { // the leader sets it a moment after all have published
		machine, release := n.Machine()
		defer release()
		return machine.Rise().Policy.Kind != level.PolicyUnset
	}, c.nodes[0])
	if err := c.addUser(c.nodes[0], "root"); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.nodes {
		c.await("the level", func(n *node) bool { return levelAt(n) == nextlevel.Level }, n)
		machine, release := n.Machine()
		if err := n.ReadIndex(c.ctx); err != nil || len(machine.Users().Users()) != 1 {
			t.Errorf("member %v has users %v, %v", n.id, machine.Users().Users(), err)
		}
		release()
	}
	restart(1, nextlevel.Level)
	if got := levelAt(c.nodes[1]); got != nextlevel.Level {
		t.Errorf("level %d after a restart", got)
	}
	c.refusesEarlierBuild()
}

// refusesEarlierBuild checks, in a cluster at the next level, that the build that ships neither starts nor joins.
func (c *cluster) refusesEarlierBuild() {
	c.t.Helper()
	down := c.nodes[2]
	down.stop()
	down.build = level.Own
	tooLow := fmt.Sprintf("feature level %d, and this build knows %d", nextlevel.Level, level.Own)
	var low *level.TooLowError
	if _, err := datadir.Open(down.data()); !errors.As(err, &low) || !errors.Is(err, apply.ErrNewer) ||
		!strings.Contains(err.Error(), tooLow+" at most: start the build that ran here before") {
		c.t.Errorf("an earlier build starts: %v", err)
	}
	url := c.reserve().url()
	var spec *membership.SpecError
	_, err := member.Join(c.ctx, transport.Options{Logger: slog.New(slog.DiscardHandler)}, c.leader().url(),
		autopilot.JoinRequest{Name: "late", PeerURLs: []string{url}, Level: level.Own})
	if !errors.As(err, &spec) || !strings.Contains(err.Error(), tooLow) {
		c.t.Errorf("an earlier build joins: %v", err)
	}
	if d, err := member.Describe(c.ctx, transport.Options{Logger: slog.New(slog.DiscardHandler)},
		c.leader().url()); err != nil ||
		d.Level != nextlevel.Level {
		c.t.Errorf("who wants to join is told level %d, %v", d.Level, err)
	}
}

// Ensure that a leader raises the level without a request, and that its view shows builds and level; and that a member that was
// added and has not started holds the level back.
func TestMember_level_raisedByLeader(t *testing.T) {
	c := startWith(t, 2, &cluster{build: nextlevel.Level})
	leader := c.leader()
	joined, err := leader.Join(c.ctx, autopilot.JoinRequest{Name: "third", PeerURLs: []string{c.reserve().url()},
		Learner: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range c.running() {
		c.publish(n, n.id.String())
	}
	var held *level.HeldError
	if err := c.addUser(leader, "root"); !errors.As(err, &held) || !strings.Contains(err.Error(), "third (never started)") {
		t.Fatalf("a member has not started: %v", err)
	}
	third := c.nodes[2]
	third.build = nextlevel.Level
	third.launch(joined.ID)
	c.publish(third, "third")
	c.await("the level", func(n *node) bool { return levelAt(n) == nextlevel.Level }, c.running()...)
	view, _, err := third.DescribeCluster(c.ctx)
	if err != nil || view.Level != nextlevel.Level || len(view.Members) != 3 {
		t.Fatalf("%+v, %v", view, err)
	}
	for _, m := range view.Members {
		if m.Level != nextlevel.Level {
			t.Errorf("%+v", m)
		}
	}
}

// Ensure that the level waits for its policy, that a command of the next level says so, that ordinary writes do not wait, and
// that a hold ends by an operator's word only; and that no time of a soak counts while a member finds something wrong.
func TestMember_level_policy(t *testing.T) {
	for policy, rises := range map[level.Policy]bool{
		{Kind: level.PolicySoak, Seconds: 1}: true, {Kind: level.PolicySoak, Seconds: 3600}: false,
		{Kind: level.PolicyHold}: false,
	} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			c := startWith(t, 3, &cluster{build: level.Own, policy: policy})
			c.nodes[2].finds.Store("DISK_SLOW: the disk of m3 is slow")
			c.upgradeAll(policy)
			if rises {
				c.risesWithoutFinding(c.nodes[2])
			} else {
				c.risesByWord(policy)
			}
			c.await("the level", func(n *node) bool { return levelAt(n) == nextlevel.Level }, c.nodes...)
		})
	}
}

// upgradeAll restarts all members with the next build, once the cluster has its policy.
func (c *cluster) upgradeAll(policy level.Policy) {
	c.t.Helper()
	for _, n := range c.nodes {
		c.publish(n, n.id.String())
	}
	c.await("a policy", func(n *node) bool {
		machine, release := n.Machine()
		defer release()
		return machine.Rise().Policy == policy && machine.Rise().Born == level.Own
	}, c.nodes...)
	for _, n := range c.nodes {
		n.stop()
		n.build = nextlevel.Level
		n.start()
		c.together()
		c.publish(n, n.id.String())
	}
}

// risesWithoutFinding checks that no time counts before a member finds nothing any more.
func (c *cluster) risesWithoutFinding(ill *node) {
	c.t.Helper()
	c.await("all say why the soak stands", func(n *node) bool {
		why, err := n.SoakPausedBy(c.ctx)
		return err == nil && strings.Contains(why, "finds DISK_SLOW")
	}, c.nodes...)
	begun := time.Now()
	c.await("more time than the soak has", func(*node) bool { return time.Since(begun) > 1500*time.Millisecond }, ill)
	for _, n := range c.nodes {
		machine, release := n.Machine()
		rise := machine.Rise()
		release()
		if rise.Seconds > 0 || levelAt(n) != level.Own {
			c.t.Errorf("member %v has soaked for %d s, at level %d, while a member finds a fault", n.id, rise.Seconds, levelAt(n))
		}
	}
	ill.finds.Store("")
}

// risesByWord checks that the level does not rise by itself, and raises it as an operator does.
func (c *cluster) risesByWord(policy level.Policy) {
	c.t.Helper()
	var held *level.HeldError
	if err := c.addUser(c.nodes[0], "root"); !errors.As(err, &held) || len(held.By) > 0 ||
		!strings.Contains(err.Error(), "quorate upgrade finalize") {
		c.t.Fatalf("%v: a command of the next level: %v", policy, err)
	}
	if n := c.nodes[0]; !n.PromptFor(&kv.Command{Put: &kv.PutOp{Key: []byte("k")}}) {
		c.t.Errorf("%v: an ordinary put waits", policy)
	}
	for raised := false; !raised; { // again, if the leader has begun a soak meanwhile
		machine, release := c.nodes[1].Machine()
		finalize := &kv.RaiseOp{Level: nextlevel.Level, Finalize: true, Of: machine.LevelView()}
		release()
		result, err := c.nodes[1].Propose(c.ctx, &kv.Command{Raise: finalize})
		if err != nil || result.Err != nil && !errors.Is(result.Err, kv.ErrBadCommand) {
			c.t.Fatalf("%v: finalize: %v, %v", policy, err, result.Err)
		}
		raised = result.Err == nil
	}
}

// Ensure that time counts under a hold: an operator who lets the level rise after a soak does not wait once more for what all
// members have run already.
func TestMember_level_countsUnderHold(t *testing.T) {
	hold := level.Policy{Kind: level.PolicyHold}
	c := startWith(t, 3, &cluster{build: level.Own, policy: hold})
	c.upgradeAll(hold)
	c.await("nothing keeps time from counting", func(n *node) bool {
		machine, release := n.Machine()
		soaks := machine.Rise().Level == nextlevel.Level
		release()
		why, err := n.SoakPausedBy(c.ctx)
		return err == nil && why == "" && soaks
	}, c.nodes...)
	begun := time.Now()
	c.await("some time under the hold", func(*node) bool { return time.Since(begun) > 6*time.Second }, c.nodes[0])
	leader := c.leader()
	c.await("the policy is a soak", func(n *node) bool { // a leader may have noted time meanwhile: then the command is late
		machine, release := n.Machine()
		soak := &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicySoak, Seconds: 90}, Of: machine.LevelView()}
		release()
		result, err := n.Propose(c.ctx, &kv.Command{LevelPolicy: soak})
		return err == nil && result.Err == nil
	}, leader)
	noted := int64(0)
	c.await("time is noted", func(n *node) bool {
		machine, release := n.Machine()
		defer release()
		noted = machine.Rise().Seconds
		return noted > 0
	}, leader)
	if noted < 4 {
		t.Errorf("%d s are noted first, and all members ran the next build for 6 s under the hold", noted)
	}
}
