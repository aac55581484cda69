package robustness_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// machine is one member, and the disk that outlives it.
type machine struct {
	args   []string
	client string
	disk   *filestest.MemFS
	server *server.Server
	log    logText
	apart  atomic.Bool // it is cut off from its peers
}

// logText keeps the log of all lives of a member.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// cluster is a few machines on one power line.
type cluster struct {
	t        *testing.T
	machines []*machine
	// power is held by every write to any disk, and taken to cut them all at one moment: nothing that a disk holds then can
	// depend on what another one lost.
	power sync.RWMutex
}

func newCluster(t *testing.T, size int, flags ...string) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var peers, founders []string
	for i := range size {
		peers = append(peers, "http://"+testnet.Address(t))
		founders = append(founders, fmt.Sprintf("m%d=%s", i+1, peers[i]))
	}
	for i := range size {
		m := &machine{client: "http://" + testnet.Address(t), disk: filestest.NewCrashableMem()}
		m.args = append([]string{
			fmt.Sprintf("--name=m%d", i+1), fmt.Sprintf("--data-dir=/m%d", i+1), "--listen-client-urls=" + m.client,
			"--advertise-client-urls=" + m.client, "--listen-peer-urls=" + peers[i],
			"--initial-advertise-peer-urls=" + peers[i], "--initial-cluster=" + strings.Join(founders, ","),
			"--heartbeat-interval=20", "--election-timeout=200", "--snapshot-count=100",
		}, flags...)
		c.machines = append(c.machines, m)
	}
	t.Cleanup(func() {
		c.stop()
		for i, m := range c.machines {
			if text := m.log.String(); t.Failed() {
				t.Logf("--- end of m%d's log\n%s", i+1, text[max(0, len(text)-2000):])
			}
		}
	})
	return c
}

// start starts all members, as none is ready without the others.
func (c *cluster) start() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	failures := make([]error, len(c.machines))
	var starting sync.WaitGroup
	for i, m := range c.machines {
		starting.Go(func() {
			options, err := config.Load(m.args, nil)
			if err != nil {
				failures[i] = err
				return
			}
			m.server, failures[i] = server.Start(ctx, options, server.Options{
				Logger: slog.New(slog.NewTextHandler(&m.log, nil)), FS: c.powered(m.disk),
				Fatal:  func(err error) { c.t.Errorf("fatal: %v", err) },
				Faults: func(consensus.MemberID) bool { return m.apart.Load() },
			})
		})
	}
	starting.Wait()
	for i, err := range failures {
		if err != nil {
			c.t.Fatalf("m%d does not start: %v", i+1, err)
		}
	}
}

// powered is a disk whose writes wait while the power is cut.
func (c *cluster) powered(disk env.FS) env.FS {
	return filestest.Wrap(disk, filestest.InjectorFunc(func(op filestest.Op) error {
		if op.Kind.ReadOrWrite() == filestest.OpIsWrite {
			c.power.RLock()
			defer c.power.RUnlock()
		}
		return nil
	}))
}

func (c *cluster) stop() {
	var stopping sync.WaitGroup
	for _, m := range c.machines {
		if m.server != nil {
			stopping.Go(func() { _ = m.server.Stop(context.Background()) })
		}
	}
	stopping.Wait()
}

// losePower cuts all disks at one moment, and ends the processes that go on with what they had.
func (c *cluster) losePower(random *rand.Rand) {
	c.t.Helper()
	percent := []int{0, 50, 100}[random.IntN(3)]
	left := make([]*filestest.MemFS, len(c.machines))
	c.power.Lock()
	for i, m := range c.machines {
		left[i] = m.disk.CrashClone(filestest.CrashCloneCfg{
			UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(random.Uint64(), uint64(i))),
		})
	}
	c.power.Unlock()
	c.stop()
	for i, m := range c.machines {
		m.disk, m.server = left[i], nil
	}
}

// cut cuts a member off from its peers, in both directions, or joins it again.
func (c *cluster) cut(which int, apart bool) { c.machines[which].apart.Store(apart) }

// only returns a client that knows some members alone.
func (c *cluster) only(which ...int) *clientv3.Client {
	c.t.Helper()
	var endpoints []string
	for _, i := range which {
		endpoints = append(endpoints, c.machines[i].client)
	}
	return c.dial(endpoints)
}

// connect returns a client that knows all members, from a given one on.
func (c *cluster) connect(first int) *clientv3.Client {
	c.t.Helper()
	var endpoints []string
	for i := range c.machines {
		endpoints = append(endpoints, c.machines[(first+i)%len(c.machines)].client)
	}
	return c.dial(endpoints)
}

func (c *cluster) dial(endpoints []string) *clientv3.Client {
	c.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: 5 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}
