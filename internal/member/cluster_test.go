package member_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/member/raising"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

const (
	testCluster  = consensus.ClusterID(0xc1)
	testPatience = 2 * time.Minute
)

// cluster is a cluster of real members in one process: disks in memory, loopback between them.
type cluster struct {
	t     *testing.T
	ctx   context.Context
	nodes []*node
	care  membership.Policy
	// clients is how long a native client may be silent.
	clients time.Duration
	clock   env.Clock // the machine's if nil
	fast    offers.Setting
	pace    integrity.Pace
	policy  level.Policy // of levels; zero: now
	build   level.Level  // level of the first members, in a cluster with the next level (package nextlevel); zero: what ships
	tell    func(ctx context.Context, about member.Subject, question []byte) ([]byte, error)
}

// node is one member of the cluster; Member is nil while it is down.
type node struct {
	*member.Member
	*member.Membership
	c      *cluster
	id     consensus.MemberID
	addr   string
	fs     *filestest.MemFS
	peers  *transport.Transport
	urls   []string // peer URLs that it gets at its next start
	stored *datadir.Data
	build  level.Level  // its level, in a cluster with the next level; zero: what ships
	finds  atomic.Value // string: what its doctor finds; nothing: none
	listen net.Listener // held until the first start, so that no other process takes the port
}

// startCluster founds a cluster of members 1, 2, … and waits until its leader is in contact with all members.
func startCluster(t *testing.T, size int) *cluster {
	t.Helper()
	return startCared(t, size, membership.Policy{})
}

func startCared(t *testing.T, size int, care membership.Policy) *cluster {
	t.Helper()
	return startWith(t, size, &cluster{care: care})
}

func startFast(t *testing.T, size int, fast offers.Setting) *cluster {
	t.Helper()
	return startWith(t, size, &cluster{fast: fast})
}

// startWith founds a cluster with the settings in c.
func startWith(t *testing.T, size int, c *cluster) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	c.t, c.ctx = t, ctx
	if c.clock == nil {
		c.clock = env.WallClock{}
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.stop()
		}
		cancel()
	})
	var config consensus.Config
	for i := range size {
		n := c.reserve()
		n.id = consensus.MemberID(i + 1)
		config.Voters = append(config.Voters, n.id)
		config.Members = append(config.Members, consensus.Member{ID: n.id, PeerURLs: []string{n.url()}})
	}
	for _, n := range c.nodes {
		n.build = c.build
		n.create(config)
		n.start()
	}
	c.together()
	return c
}

// together waits until the leader is in contact with all members and all have caught up: before that it refuses changes that
// may cost the quorum.
func (c *cluster) together() {
	c.t.Helper()
	silent := func(p raft.PeerProgress) bool { return !p.RecentActive || !p.CaughtUp }
	c.await("every member", func(n *node) bool { return !slices.ContainsFunc(n.Status().Progress, silent) }, c.leader())
}

// reserve makes a node that is no member yet, with an address.
func (c *cluster) reserve() *node {
	c.t.Helper()
	l, err := net.Listen("tcp", testnet.Address(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	n := &node{c: c, addr: l.Addr().String(), fs: filestest.NewMem(), listen: l}
	c.nodes = append(c.nodes, n)
	return n
}

func (n *node) url() string { return "http://" + n.addr }

func (n *node) data() datadir.Options {
	return datadir.Options{
		FS: n.fs, Dir: "data", Logger: slog.New(slog.DiscardHandler),
		OpenEngine: func(dir string) (engine.Engine, error) {
			return engine.Open(engine.Options{FS: n.fs, Dir: dir})
		},
		Apply: n.knows(),
	}
}

// knows is the level of its build.
func (n *node) knows() apply.Options {
	if n.build == 0 {
		return apply.Options{}
	}
	return apply.Options{Level: n.build, Needs: nextlevel.Needs}
}

func (n *node) create(first consensus.Config) {
	n.c.t.Helper()
	identity := wal.Identity{Cluster: testCluster, Member: n.id, Storage: wal.StorageID{1}}
	binary.BigEndian.PutUint64(identity.Storage[8:], uint64(n.id)) // all of a storage id must tell members apart
	if err := datadir.Create(n.data(), identity, first); err != nil {
		n.c.t.Fatal(err)
	}
}

// launch starts a newcomer under the id that the cluster gave it.
func (n *node) launch(id consensus.MemberID) {
	n.c.t.Helper()
	n.id = id
	n.create(consensus.Config{})
	n.start()
}

func (n *node) start() {
	n.c.t.Helper()
	logger := slog.New(slog.DiscardHandler)
	if os.Getenv("MEMBER_TEST_LOG") != "" {
		logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("member", n.id.String())
	}
	data, err := datadir.Open(n.data())
	if err != nil {
		n.c.t.Fatal(err)
	}
	n.stored = data
	options := raft.Defaults(n.id)
	options.Cluster, options.Seed = testCluster, uint64(n.id)
	options.ElectionTicks, options.HeartbeatTicks, options.MaxLearners = 40, 4, 2
	n.Member = member.New(member.Options{
		Data: data, Raft: options, TickInterval: 5 * time.Millisecond, RequestTimeout: 10 * time.Second,
		MaxRequestBytes: 1 << 20, Care: n.c.care, ClientPatience: n.c.clients, FastPath: n.c.fast, Clock: n.c.clock,
		Logger: logger, PeerURLs: n.urls, Integrity: n.c.pace, LevelPolicy: cmp.Or(n.c.policy, level.Policy{Kind: level.PolicyNow}),
		Verdict: n.verdict, Tell: n.c.tell,
	})
	n.Membership = n.Member.Membership()
	l := n.listen
	if n.listen = nil; l == nil {
		if l, err = net.Listen("tcp", n.addr); err != nil {
			n.c.t.Fatal(err)
		}
	}
	n.peers, err = transport.New(transport.Options{
		Self:        identity.Claim{Member: n.id, Cluster: testCluster},
		OpenMethods: member.OpenMethods(), MovedMethods: member.MovedMethods(),
		Handler: n.PeerHandler(), Listeners: []net.Listener{l}, Logger: logger,
	})
	if err == nil {
		err = n.Start(n.peers)
	}
	if err != nil {
		n.c.t.Fatal(err)
	}
}

func (n *node) verdict() raising.Verdict {
	finding, _ := n.finds.Load().(string)
	return raising.Verdict{Judged: true, Finding: finding}
}

// stop ends a node as a crash does, without a message to the others.
func (n *node) stop() {
	n.c.t.Helper()
	if n.listen != nil {
		_ = n.listen.Close()
	}
	if n.Member == nil || n.peers == nil { // start failed
		return
	}
	if err := errors.Join(n.peers.Close(), n.Stop()); err != nil {
		n.c.t.Errorf("stop %v: %v", n.id, err)
	}
	n.Member = nil
}

// running lists the nodes that are up and were not removed.
func (c *cluster) running() []*node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return n.Member == nil || n.Err() != nil })
}

// leader waits for a node that leads and that all others follow.
func (c *cluster) leader() *node {
	c.t.Helper()
	var found *node
	c.await("a leader", func(n *node) bool {
		for _, other := range c.running() {
			if other.ID() == n.Leader() {
				found = other
			}
		}
		return found != nil && found.Leader() == found.ID() && found.Status().TermStarted
	}, c.running()...)
	return found
}

// others are the running nodes except the given ones.
func (c *cluster) others(than ...*node) []*node {
	return slices.DeleteFunc(c.running(), func(n *node) bool { return slices.Contains(than, n) })
}

// await waits until a condition holds at each of some nodes. It checks after each change that a node signals, and now and then.
func (c *cluster) await(what string, met func(*node) bool, nodes ...*node) {
	c.t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for _, n := range nodes {
		for {
			leader, config, jobs := n.LeaderChanged(), n.ConfigChanged(), n.JobsChanged()
			if met(n) {
				break
			}
			select {
			case <-leader:
			case <-config:
			case <-jobs:
			case <-poll.C:
			case <-c.ctx.Done():
				c.t.Fatalf("member %v never saw %s; its jobs: %+v", n.id, what, n.Jobs())
			}
		}
	}
}

func (c *cluster) put(n *node, key string) {
	c.t.Helper()
	result, err := n.Propose(c.ctx, &kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: []byte("v")}})
	if err = errors.Join(err, result.Err); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) publish(n *node, name string) {
	c.t.Helper()
	result, err := n.Propose(c.ctx, &kv.Command{Publish: &kv.PublishOp{Member: uint64(n.id), Name: name, Build: "test"}})
	if err = errors.Join(err, result.Err); err != nil {
		c.t.Fatal(err)
	}
}

// config is the configuration that is applied at a node.
func (n *node) config() consensus.Config {
	machine, release := n.Machine()
	defer release()
	config, _ := machine.Config()
	return config
}
