package process_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorate/quorate/internal/doctor"
	"github.com/quorate/quorate/internal/server/certs/certstest"
)

// must fails the test.
func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// use calls a client of all members.
func (c *cluster) use(f func(ctx context.Context, client *clientv3.Client) error) {
	c.t.Helper()
	client := c.connect(c.nodes...)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.must(f(ctx, client))
}

// command runs a command of the program against the first member.
func (c *cluster) command(words ...string) {
	c.t.Helper()
	out, err := exec.Command(c.binary, append(words, "--endpoints="+c.nodes[0].client)...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%v: %v\n%s", words, err, out)
	}
}

// moveLeader hands leadership to another member.
func (c *cluster) moveLeader() {
	c.t.Helper()
	c.lead(c.leaderFirst()[1])
}

// lead lets a member lead.
func (c *cluster) lead(n *node) {
	c.t.Helper()
	id := c.memberID(n)
	until(c.t, n.name+" leads", func(ctx context.Context) bool {
		first := c.leaderFirst()[0]
		if first == n {
			return true
		}
		client := c.connect(first)
		defer client.Close()
		_, _ = client.MoveLeader(ctx, id) // refused while n lags, or once another one leads
		return false
	})
}

// fill writes values of a size until so many bytes are written, or a write is refused.
func (c *cluster) fill(size, count int) {
	c.use(func(ctx context.Context, client *clientv3.Client) error {
		for i := range count {
			if _, err := client.Put(ctx, fmt.Sprintf("/fill/%d", i), strings.Repeat("x", size)); err != nil {
				return nil // refused: that is what some faults are about
			}
		}
		return nil
	})
}

// alarm raises an alarm.
func (c *cluster) alarm(kind pb.AlarmType, member uint64) {
	c.use(func(ctx context.Context, client *clientv3.Client) error {
		_, err := pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx,
			&pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: kind, MemberID: member})
		return err
	})
}

// unread opens a watch whose events no client reads.
func (c *cluster) unread() {
	conn, err := grpc.NewClient(strings.TrimPrefix(c.nodes[0].client, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithInitialWindowSize(64<<10))
	c.must(err)
	c.t.Cleanup(func() { _ = conn.Close() })
	for range 4 {
		stream, err := pb.NewWatchClient(conn).Watch(c.t.Context())
		c.must(err)
		c.must(stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{Key: []byte("/fill/"), RangeEnd: []byte("/fill0")}}}))
	}
}

// fewFiles makes a member run with so few file descriptors.
func fewFiles(most int) func(cmd *exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, most), cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
}

// hold keeps so many connections to the last member open, each of which has asked something.
func (c *cluster) hold(connections int) {
	for range connections {
		client := c.connect(c.nodes[len(c.nodes)-1])
		c.t.Cleanup(func() { _ = client.Close() })
		ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
		_, err := client.Get(ctx, "k")
		cancel()
		if err != nil {
			return // it takes no more
		}
	}
}

// scan lets a follower look for keys that are not there, in a range that is large, until the test ends: it works, and clients do not.
func (c *cluster) scan() {
	follower := c.leaderFirst()[2]
	c.use(func(ctx context.Context, client *clientv3.Client) error {
		for i := range 100 {
			var ops []clientv3.Op
			for j := range 100 {
				ops = append(ops, clientv3.OpPut(fmt.Sprintf("/hot/%d/%d", i, j), "v"))
			}
			if _, err := client.Txn(ctx).Then(ops...).Commit(); err != nil {
				return err
			}
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	c.t.Cleanup(func() {
		cancel()
		wait.Wait()
	})
	for range 8 {
		client := c.connect(follower)
		wait.Go(func() {
			defer client.Close()
			for ctx.Err() == nil {
				_, _ = client.Get(ctx, "/hot/", clientv3.WithPrefix(), clientv3.WithSerializable(), clientv3.WithMinModRev(1<<40))
			}
		})
	}
}

// untilSettled is how long after its start a member counts what it applies for what its log had, and as much again.
const untilSettled = 20 * time.Second

// ailments are faults that need nothing of the system but processes.
var ailments = []ailment{
	{name: "a follower is killed", inject: func(c *cluster) { c.leaderFirst()[2].kill() }, code: doctor.MemberDown, status: 5,
		words: " is down, for "},
	{name: "the leader is killed", inject: func(c *cluster) { c.leaderFirst()[0].kill() }, code: doctor.MemberDown, status: 5,
		words: " is down"},
	{name: "one of five is killed", size: 5, inject: func(c *cluster) { c.leaderFirst()[2].kill() }, code: doctor.MemberDown, status: 1,
		words: " is down, for "},
	{name: "a follower is stopped by SIGSTOP", inject: func(c *cluster) {
		c.must(c.leaderFirst()[2].cmd.Process.Signal(syscall.SIGSTOP))
	}, code: doctor.MemberHangs, status: 5, words: "its process accepts connections and does not answer"},
	{name: "two of three are killed", inject: func(c *cluster) {
		n := c.leaderFirst()
		n[0].kill()
		n[1].kill()
	}, code: doctor.NoQuorum, status: 5, words: "2 of 3 voters are down"},
	{name: "a disk is lost", inject: func(c *cluster) {
		n := c.leaderFirst()[2]
		n.kill()
		c.put(c.leaderFirst()[0], "after", "1")
		c.wipe(n)
		c.start(n)
	}, code: doctor.DiskLost, status: 5, words: "has lost its data"},
	{name: "the store reaches its quota", flags: []string{"--quota-backend-bytes=2097152"},
		inject: func(c *cluster) { c.fill(100<<10, 40) }, code: doctor.NoSpace, status: 5, words: "reached its quota"},
	{name: "the store comes near its quota", flags: []string{"--quota-backend-bytes=4194304"},
		inject: func(c *cluster) { c.fill(65<<10, 61) }, code: doctor.QuotaNear, status: 5, words: " % of its quota"},
	{name: "a member is marked corrupt", inject: func(c *cluster) { c.alarm(pb.AlarmType_CORRUPT, c.memberID(c.leaderFirst()[2])) },
		code: doctor.MemberCorrupt, status: 5, words: "differ from those of the majority"},
	{name: "no member reaches one at its peer URL", inject: func(c *cluster) { c.leaderFirst()[2].proxy.cut() },
		code: doctor.PeerURLWrong, status: 5, words: "no member reaches"},
	{name: "an update to a wrong peer URL", inject: func(c *cluster) {
		c.command("member", "update", c.leaderFirst()[2].name, "--peer-urls=http://127.0.0.1:1", "--force=a test", "--yes", "--detach")
	}, code: doctor.PeerURLWrong, status: 1, words: "http://127.0.0.1:1"},
	{name: "no member reaches another one", inject: func(c *cluster) {
		for _, n := range c.nodes {
			n.proxy.cut()
		}
	}, code: doctor.Partition, status: 5, words: "the members do not reach each other"},
	{name: "a client URL is wrong", flagsOf: map[int][]string{3: {"--advertise-client-urls=http://127.0.0.1:1"}},
		code: doctor.ClientURLWrong, status: 1, words: "m3 is not reached at 127.0.0.1:1"},
	{name: "a client URL is that of another member", dress: func(c *cluster) {
		c.nodes[2].flags = []string{"--advertise-client-urls=" + c.nodes[0].client}
	}, code: doctor.ClustersMixed, status: 1, words: "another process answers"},
	{name: "a client URL has a name that does not resolve", flagsOf: map[int][]string{3: {"--advertise-client-urls=http://m3.invalid:1"}},
		code: doctor.NameUnresolved, status: 1, words: "the name in the client URL of m3, m3.invalid:1, does not resolve here"},
	{name: "a client port is full", dress: func(c *cluster) { c.nodes[2].prepare = fewFiles(200) }, inject: func(c *cluster) { c.hold(120) },
		code: doctor.ClientsRefused, status: 1, words: "accepts connections and closes them at once: the limit of connections of m3 is reached"},
	{name: "a hot prefix", dress: func(c *cluster) {
		for _, n := range c.nodes {
			n.prepare = func(cmd *exec.Cmd) { cmd.Env = append(os.Environ(), "GOMAXPROCS=1") }
		}
	}, inject: func(c *cluster) { c.scan() }, code: doctor.HotPrefix, status: 0, words: "calls for one prefix of keys take"},
	{name: "slow links", flagsOf: map[int][]string{3: {"--peer-delay=130ms"}}, code: doctor.LinkSlow, status: 1, words: "a round trip takes 1"},
	{name: "a learner that never starts", flags: []string{"--strict-reconfig-check=false"}, inject: func(c *cluster) {
		c.use(func(ctx context.Context, client *clientv3.Client) error {
			_, err := client.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:1"})
			return err
		})
	}, code: doctor.NotStarted, status: 0, words: "was added and has never started"},
	{name: "all voters are cordoned", size: 4, flags: []string{"--strict-reconfig-check=false"}, inject: func(c *cluster) {
		c.command("member", "cordon", "m1", "m2", "m3", "--yes")
		c.command("member", "remove", "m4", "--yes")
		c.nodes[3].kill()
	}, code: doctor.CordonedAll, status: 1, words: "all 3 voters are cordoned"},
	{name: "two voters", size: 2, code: doctor.TwoVoters, status: 5, words: "m1 and m2"},
	{name: "four voters", size: 4, code: doctor.EvenVoters, status: 0, words: "4 voters"},
	{name: "one voter", size: 1, code: doctor.OneVoter, status: 0, words: "m1 is the only voter"},
	{name: "two zones", flagsOf: map[int][]string{1: {"--zone=a"}, 2: {"--zone=a"}, 3: {"--zone=b"}}, code: doctor.ZonesUneven, status: 0,
		words: "zone a has 2 of 3 voters"},
	{name: "a log without syncs", flagsOf: map[int][]string{2: {"--unsafe-no-fsync"}}, code: doctor.NoSync, status: 5, words: "m2 does not sync its log"},
	{name: "the leader changes often", inject: func(c *cluster) {
		for range 6 {
			c.moveLeader()
		}
	}, code: doctor.LeaderChanges, status: 1, words: "the leader changed "},
	{name: "a lease storm", inject: func(c *cluster) {
		last(untilSettled)
		c.use(func(ctx context.Context, client *clientv3.Client) error {
			for range 300 {
				if _, err := client.Grant(ctx, 600); err != nil {
					return err
				}
			}
			return nil
		})
	}, code: doctor.LeaseStorm, status: 1, words: "300 leases were granted within"},
	{name: "huge values", inject: func(c *cluster) {
		last(untilSettled)
		c.fill(300<<10, 15)
	}, code: doctor.ValuesHuge, status: 0, words: "KiB on average"},
	{name: "a watch that no client reads", flags: []string{"--memory=128MiB"}, inject: func(c *cluster) {
		c.unread()
		c.fill(100<<10, 60)
	}, code: doctor.WatcherUnread, status: 1, words: "do not read their watches"},
	{name: "nothing is compacted", inject: func(c *cluster) {
		c.use(func(ctx context.Context, client *clientv3.Client) error {
			for range 110 {
				var ops []clientv3.Op
				for i := range 100 {
					ops = append(ops, clientv3.OpPut(fmt.Sprintf("/k/%d", i), "v"))
				}
				if _, err := client.Txn(ctx).Then(ops...).Commit(); err != nil {
					return err
				}
			}
			return nil
		})
	}, code: doctor.HistoryKept, status: 0, words: "versions of 10"},
	{name: "the disk has less than its reserve", flagsOf: map[int][]string{2: {"--disk-reserve-bytes=1152921504606846976"}},
		code: doctor.DiskFull, status: 5, words: "the disk of m2 is nearly full"},
	{name: "the peer port is open and in clear", dress: func(c *cluster) {
		for _, n := range c.nodes {
			n.flags = []string{"--listen-peer-urls=http://" + anyAddress(n.peer)}
		}
	}, code: doctor.PeersInClear, status: 0, words: "m1 speaks with other machines' members unencrypted"},
	{name: "a certificate near its end", dress: func(c *cluster) { c.dressInTLS(99*time.Hour, 30*time.Minute) },
		code: doctor.CertNear, status: 5, words: "the certificate of m3 for peers expires in "},
	{name: "a certificate expires", dress: func(c *cluster) { c.dressInTLS(99*time.Hour, 30*time.Second) },
		code: doctor.CertExpired, status: 5, words: "the certificate of m3 for peers expired "},
	{name: "a peer with a certificate of another authority", dress: func(c *cluster) { c.dressInTLS(time.Hour, 24*time.Hour) },
		inject: func(c *cluster) {
			n := c.nodes[2]
			n.kill()
			certstest.New(c.t, "others").IssueAs(c.certs, n.name, loopback(time.Hour, 24*time.Hour))
			c.start(n)
		}, code: doctor.WrongAuthority, status: 5, words: "do not take each other's certificates"},
	{name: "members of two builds", dress: func(c *cluster) { c.nodes[2].program = otherBuild(c.t) }, code: doctor.BuildsMixed, status: 0,
		words: "members run 2 builds"},
	{name: "a level is held back by one member", dress: func(c *cluster) {
		for _, n := range c.nodes[:2] {
			n.program = anotherBinary(c.t, nextBuild)
		}
	}, code: doctor.BuildsMixed, status: 0, words: "members run 2 builds", also: doctor.LevelHeld},
	{name: "two at once: one of five is killed, and the client URL of another one is wrong", size: 5,
		flagsOf: map[int][]string{3: {"--advertise-client-urls=http://127.0.0.1:1"}}, inject: func(c *cluster) { c.nodes[4].kill() },
		code: doctor.MemberDown, status: 1, words: "m5 is down", also: doctor.ClientURLWrong},
}
