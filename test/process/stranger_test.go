package process_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/transport"
)

// strangersClaim is what a process that is in no cluster says: that it is one of the members, recovered without the others.
func strangersClaim(t *testing.T, of *node) identity.Claim {
	t.Helper()
	var greeting identity.Greeting
	until(t, "somebody greets", func(ctx context.Context) bool {
		body, err := transport.CallURL(ctx, transport.Options{}, "http://"+of.peer, member.MethodGreet, nil, member.MostGreeting)
		return err == nil && json.Unmarshal(body, &greeting) == nil
	})
	claim := greeting.Claim
	claim.Epoch = consensus.Epoch{Number: claim.Epoch.Number + 1, Recovery: [16]byte{0xad}}
	claim.Life, claim.Address = consensus.Life{Boots: 99, Nonce: 7}, "http://192.0.2.1:2380"
	return claim
}

// shout tells all members the same, again and again, until stop is called.
func shout(t *testing.T, claim *identity.Claim, to []*node) (stop func()) {
	t.Helper()
	other, err := transport.New(transport.Options{Self: *claim, Handler: nobody{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			for _, n := range to {
				call, done := context.WithTimeout(ctx, 200*time.Millisecond)
				_, _ = other.CallURL(call, "http://"+n.peer, member.MethodGreet, nil, member.MostGreeting) // whatever it is answered
				done()
			}
		}
	}()
	return func() {
		cancel()
		<-ended
		_ = other.Close()
	}
}

// nobody is the handler of a process that is no member.
type nobody struct{ transport.Handler }

// switchOff lets all members lose each other for longer than one counts as having a quorum: five election timeouts.
func (c *cluster) switchOff(nodes []*node) {
	c.t.Helper()
	for _, n := range nodes {
		n.proxy.cut()
	}
	for lost := 0; lost < 4; { // each attempt takes three election timeouts
		lost++
		if c.mayWrite(nodes[lost%len(nodes)], "without a leader") {
			lost = 0
		}
	}
	for _, n := range nodes {
		n.proxy.heal()
	}
}

// TestStrangers_greet lets a process that is in no cluster tell all members that the cluster was recovered without them, while
// all of them boot, and while they have no leader. It must change nothing.
func TestStrangers_greet(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.put(c.nodes[0], "a", "1")
	claim := strangersClaim(t, c.nodes[2])
	for _, n := range c.nodes {
		n.kill()
	}
	stop := shout(t, &claim, c.nodes)
	for _, n := range c.nodes {
		c.start(n)
	}
	for _, n := range c.nodes {
		c.waitReady(n)
	}
	c.wantKey(c.nodes[1], "a", "1")
	// No leader for longer than a member counts as one that has a quorum: five election timeouts.
	c.switchOff(c.nodes)
	until(t, "they serve again", func(context.Context) bool { return c.mayWrite(c.nodes[0], "c") })
	stop()
	for _, n := range c.nodes {
		if log := tail(n.log, 1<<20); strings.Contains(log, "was recovered without") {
			t.Errorf("%s believes it", n.name)
		}
	}
}

// TestRecover_ghost recovers a member by mistake while the others serve. It is stopped for ever, as their alarm says. A later
// loss of their quorum, for a moment, must not end them.
func TestRecover_ghost(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	ghost, majority := c.nodes[2], c.nodes[:2]
	ghost.kill()
	c.put(majority[0], "a", "1")
	e := &elastic{cluster: c}
	for _, n := range majority { // the ghost does not reach them, so it finds none: its operator names the others
		n.proxy.cut()
	}
	e.quorate(0, []string{"recover", "--data-dir", ghost.dir, "--yes", "--members-are-lost", "m1,m2"}, "m3 is recovered")
	for _, n := range majority {
		n.proxy.heal()
	}
	until(t, "the majority serves", func(context.Context) bool { return c.mayWrite(majority[0], "b") })
	c.start(ghost)
	for _, n := range majority {
		until(t, n.name+" raises an alarm", func(context.Context) bool {
			return strings.Contains(tail(n.log, 1<<20), "was recovered without this member")
		})
	}
	ghost.kill()
	c.switchOff(majority)
	for _, n := range majority {
		until(t, n.name+" serves again", func(context.Context) bool { return c.mayWrite(n, "e") })
	}
	until(t, "the alarm ends", func(ctx context.Context) bool {
		client := c.connect(majority[0])
		defer client.Close()
		status, err := client.Status(ctx, majority[0].client)
		return err == nil && !strings.Contains(strings.Join(status.Errors, " "), "recovered")
	})
}
