package member_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/level"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

// levelAt is the active feature level that a node has applied.
func levelAt(n *node) level.Level {
	machine, release := n.Machine()
	defer release()
	return machine.ActiveLevel()
}

// addUser asks a node for what needs level.Users.
func (c *cluster) addUser(n *node, name string) error {
	change := &auth.Change{Kind: auth.UserAdd, User: name, Hash: []byte("h")}
	result, err := n.Propose(c.ctx, &kv.Command{Auth: change})
	return errors.Join(err, result.Err)
}

// putPackable puts what makes a record of the log smaller if it is packed.
func (c *cluster) putPackable(n *node) {
	c.t.Helper()
	result, err := n.Propose(c.ctx, &kv.Command{Put: &kv.PutOp{Key: []byte("large"), Value: make([]byte, 4<<10)}})
	if err = errors.Join(err, result.Err); err != nil {
		c.t.Fatal(err)
	}
}

// packed is how many records of its log a node has packed in this life.
func packed(n *node) uint64 {
	log, _ := n.StorageStats()
	return log.Packed
}

// Ensure that no command of a level is applied, and no record of the log packed, before all members know it: members are upgraded one
// by one, one of them loses power in between and goes back to the earlier build, and a build that knows less neither starts nor joins
// afterwards.
func TestMember_rollingUpgrade(t *testing.T) {
	c := startWith(t, 3, &cluster{build: level.First})
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
		for _, n := range c.nodes[:upgraded] { // asked at those who know the command
			var held *level.HeldError
			if err := c.addUser(n, "early"); !errors.As(err, &held) || held.Needs != level.Users ||
				len(held.By) != 3-upgraded || !strings.Contains(err.Error(), "three (an earlier build, level 1)") {
				t.Fatalf("%d are upgraded: %v", upgraded, err)
			}
			c.put(n, "k")
		}
		c.putPackable(c.nodes[upgraded])
		for _, n := range c.nodes {
			if got := packed(n); got > 0 {
				t.Errorf("%d are upgraded: member %v has packed %d records", upgraded, n.id, got)
			}
		}
		restart(upgraded, level.Own)
		if upgraded == 1 { // goes back once more, and forth
			restart(0, level.First)
			restart(0, level.Own)
		}
	}
	if err := c.addUser(c.nodes[0], "root"); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.nodes {
		c.await("the level", func(n *node) bool { return levelAt(n) == level.Own }, n)
		machine, release := n.Machine()
		if err := n.ReadIndex(c.ctx); err != nil || len(machine.Users().Users()) != 1 {
			t.Errorf("member %v has users %v, %v", n.id, machine.Users().Users(), err)
		}
		release()
	}
	restart(1, level.Own)
	if got := levelAt(c.nodes[1]); got != level.Own {
		t.Errorf("level %d after a restart", got)
	}
	c.putPackable(c.nodes[1])
	c.await("records are packed, after a restart too", func(n *node) bool { return packed(n) > 0 }, c.nodes...)
	c.nodes[1].stop()
	c.nodes[1].build = level.First
	if _, err := datadir.Open(c.nodes[1].data()); !errors.Is(err, wal.ErrNewerVersion) {
		t.Errorf("an earlier build reads packed records: %v", err)
	}
	restart(1, level.Own)

	down := c.nodes[2]
	down.stop()
	down.build = level.First
	var low *level.TooLowError
	mislaid := down.data() // even if its log does not tell
	mislaid.WALDir = "wal-of-an-earlier-build"
	if log, err := wal.Create(mislaid.WAL(), wal.Identity{Cluster: testCluster, Member: down.id}); err != nil || log.Close() != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Open(mislaid); !errors.As(err, &low) || !errors.Is(err, apply.ErrNewer) {
		t.Errorf("an earlier build starts: %v", err)
	}
	url := c.reserve().url()
	var spec *membership.SpecError
	_, err := member.Join(c.ctx, transport.Options{Logger: slog.New(slog.DiscardHandler)}, c.leader().url(),
		autopilot.JoinRequest{Name: "late", PeerURLs: []string{url}, Level: level.First})
	if !errors.As(err, &spec) || !strings.Contains(err.Error(), "feature level 6, and this build knows 1") {
		t.Errorf("an earlier build joins: %v", err)
	}
	if d, err := member.Describe(c.ctx, transport.Options{Logger: slog.New(slog.DiscardHandler)}, c.leader().url()); err != nil ||
		d.Level != level.Own {
		t.Errorf("who wants to join is told level %d, %v", d.Level, err)
	}
}

// Ensure that a leader raises the level without being asked, and shows builds and level; and that a member which was added and has
// not started holds it back.
func TestMember_level_raisedByLeader(t *testing.T) {
	c := startCluster(t, 2)
	leader := c.leader()
	joined, err := leader.Join(c.ctx, autopilot.JoinRequest{Name: "third", PeerURLs: []string{c.reserve().url()}, Learner: true})
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
	third.launch(joined.ID)
	c.publish(third, "third")
	c.await("the level", func(n *node) bool { return levelAt(n) == level.Own }, c.running()...)
	view, _, err := third.DescribeCluster(c.ctx)
	if err != nil || view.Level != level.Own || len(view.Members) != 3 {
		t.Fatalf("%+v, %v", view, err)
	}
	for _, m := range view.Members {
		if m.Level != level.Own {
			t.Errorf("%+v", m)
		}
	}
}
