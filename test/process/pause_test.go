package process_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// TestCluster_pausedLeader stops the leader's process, lets the others elect and write, and lets it go on while readers
// ask it: what they are told is never older than what was acknowledged before they asked. With leader leases too, whose
// clock went on while the process did not (etcd#20418).
func TestCluster_pausedLeader(t *testing.T) {
	for _, lease := range []string{"--leader-lease=false", "--leader-lease=true"} {
		t.Run(lease, func(t *testing.T) {
			c := startCluster(t, 3, lease)
			for round := range 3 {
				pauseLeader(t, c, round)
			}
		})
	}
}

func pauseLeader(t *testing.T, c *cluster, round int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var old *node
	until(t, "a member leads", func(context.Context) bool {
		old = c.leads()
		return old != nil
	})
	var others []*node
	for _, n := range c.nodes {
		if n != old {
			others = append(others, n)
		}
	}
	sent := &sentCounter{}
	client, reader := c.connect(others...), dialAlone(t, old, grpc.WithStatsHandler(sent))
	defer client.Close()
	if _, err := reader.Get(ctx, "k"); err != nil { // connected, and its lease is fresh
		t.Fatal(err)
	}
	signal(t, old, syscall.SIGSTOP)
	var asking sync.WaitGroup
	answers := make([]*clientv3.GetResponse, 32) // they wait in the stopped process's socket, and are there when it goes on
	want := fmt.Sprint("while it was stopped ", round)
	put, err := client.Put(ctx, "k", want)
	if err != nil {
		signal(t, old, syscall.SIGCONT)
		t.Fatal(err)
	}
	before := sent.requests.Load()
	for i := range answers {
		asking.Go(func() {
			short, end := context.WithTimeout(ctx, 10*time.Second)
			defer end()
			answers[i], _ = reader.Get(short, "k") // to refuse is no lie
		})
	}
	until(t, "the readers have asked", func(context.Context) bool {
		return sent.requests.Load() >= before+int64(len(answers))
	})
	signal(t, old, syscall.SIGCONT)
	asking.Wait()
	told := 0
	for _, got := range answers {
		if got == nil {
			continue
		}
		told++
		if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != want || got.Header.Revision < put.Header.Revision {
			t.Errorf("round %d: a reader was told %v at revision %d, after %q was acknowledged at %d", round, got.Kvs,
				got.Header.Revision, want, put.Header.Revision)
		}
	}
	if told == 0 {
		t.Error("no reader was answered: nothing was tested")
	}
}

// sentCounter counts the requests that a client has written to its connection.
type sentCounter struct{ requests atomic.Int64 }

func (s *sentCounter) HandleRPC(_ context.Context, event stats.RPCStats) {
	if _, out := event.(*stats.OutPayload); out {
		s.requests.Add(1)
	}
}

func (s *sentCounter) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (s *sentCounter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (s *sentCounter) HandleConn(context.Context, stats.ConnStats) {}
