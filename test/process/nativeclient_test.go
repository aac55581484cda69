package process_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/client"

	"github.com/quorate/quorate/test/history"
)

// counters are what native clients wrote and were told.
type counters struct {
	mu       sync.Mutex
	puts     map[string]int64 // key -> acknowledged
	swaps    int64            // increments of the shared counter
	doubts   []error
	failures []error
}

// TestNativeClient_leadersKilled kills the leader again and again, and then torments any member, while native clients count.
// Every write that was acknowledged happened once: each key has as many versions as its client was told, and the counter
// that all increment stands where the sum of the successes says. Nothing stays in doubt.
func TestNativeClient_leadersKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := startCluster(t, 3)
	record := history.NewRecorder()
	count := &counters{puts: map[string]int64{}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var load sync.WaitGroup
	for id := range clients {
		native := c.connectNative()
		defer native.Close()
		random := rand.New(rand.NewPCG(seed, uint64(id)))
		switch {
		case id < 2:
			load.Go(func() { history.RunClient(ctx, native.Client, id, random, record) })
		case id < 4:
			for lane := range 8 { // many at once, in one stream
				load.Go(func() { count.put(ctx, native, fmt.Sprintf("put%d-%d", id, lane)) })
			}
		default:
			load.Go(func() { count.swap(ctx, native) })
		}
	}
	kills := killLeaders(t, c, faultTime)
	faults := torment(t, c, rand.New(rand.NewPCG(seed, 1<<32)))
	until(t, "500 puts and 50 increments are acknowledged", func(context.Context) bool {
		total, swaps := count.done()
		return total >= 500 && swaps >= 50
	})
	stop()
	load.Wait()

	t.Logf("%d leaders killed, then %v; %d increments, %d in doubt, %d operations", kills, faults, count.swaps,
		len(count.doubts), record.Len())
	if len(count.doubts)+len(count.failures) > 0 {
		t.Errorf("in doubt: %v; failed: %v", count.doubts, count.failures)
	}
	count.check(t, c)
	checkAcknowledged(t, c, record)
	checkHistory(t, record)
}

func (c *cluster) connectNative() *client.Client {
	c.t.Helper()
	var endpoints []string
	for _, n := range c.nodes {
		endpoints = append(endpoints, n.client)
	}
	native, err := client.New(client.Config{Endpoints: endpoints, DialTimeout: time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	return native
}

// put writes a key until the end; nothing but the client's own patience limits a write.
func (n *counters) put(ctx context.Context, native *client.Client, key string) {
	for i := 0; ctx.Err() == nil; i++ {
		_, err := native.Put(context.Background(), key, strconv.Itoa(i))
		if n.failed(err) {
			continue
		}
		n.mu.Lock()
		n.puts[key]++
		n.mu.Unlock()
	}
}

// swap increments a counter that others increment, too.
func (n *counters) swap(ctx context.Context, native *client.Client) {
	for ctx.Err() == nil {
		readCtx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		got, err := native.Get(readCtx, "counter")
		cancel()
		if err != nil {
			continue // a read may fail
		}
		value, mod := 0, int64(0)
		if len(got.Kvs) > 0 {
			mod = got.Kvs[0].ModRevision
			value, _ = strconv.Atoi(string(got.Kvs[0].Value))
		}
		swapped, err := native.Txn(context.Background()).If(clientv3.Compare(clientv3.ModRevision("counter"), "=", mod)).
			Then(clientv3.OpPut("counter", strconv.Itoa(value+1))).Commit()
		if n.failed(err) || !swapped.Succeeded {
			continue
		}
		n.mu.Lock()
		n.swaps++
		n.mu.Unlock()
	}
}

func (n *counters) failed(err error) bool {
	if err == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var doubt *client.InDoubtError
	if errors.As(err, &doubt) {
		n.doubts = append(n.doubts, err)
	} else {
		n.failures = append(n.failures, err)
	}
	return true
}

// done returns how many puts and increments were acknowledged.
func (n *counters) done() (puts, swaps int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, acknowledged := range n.puts {
		puts += acknowledged
	}
	return puts, n.swaps
}

func (n *counters) check(t *testing.T, c *cluster) {
	t.Helper()
	plain := c.connect(c.nodes...)
	defer plain.Close()
	total := int64(0)
	for key, acknowledged := range n.puts {
		got, err := plain.Get(context.Background(), key)
		if err != nil || len(got.Kvs) != 1 {
			t.Fatalf("%s: %v, %v", key, got, err)
		}
		if version := got.Kvs[0].Version; version != acknowledged {
			t.Errorf("%s was written %d times, acknowledged %d times", key, version, acknowledged)
		}
		total += acknowledged
	}
	got, err := plain.Get(context.Background(), "counter")
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("counter: %v, %v", got, err)
	}
	if string(got.Kvs[0].Value) != strconv.FormatInt(n.swaps, 10) || got.Kvs[0].Version != n.swaps {
		t.Errorf("the counter is %s in its version %d after %d increments", got.Kvs[0].Value, got.Kvs[0].Version, n.swaps)
	}
	t.Logf("%d puts", total)
}

// killLeaders kills the member that leads, and starts it again, until the time is over.
func killLeaders(t *testing.T, c *cluster, length time.Duration) (kills int) {
	t.Helper()
	for end := time.Now().Add(length); time.Now().Before(end); {
		last(500 * time.Millisecond)
		leader := c.leads()
		if leader == nil {
			continue
		}
		leader.kill()
		kills++
		last(700 * time.Millisecond)
		c.start(leader)
		c.waitReady(leader)
	}
	return kills
}

// leads returns the member that says that it leads, nil if there is none.
func (c *cluster) leads() *node {
	for _, n := range c.nodes {
		one := c.connect(n)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		status, err := one.Status(ctx, n.client)
		cancel()
		_ = one.Close()
		if err == nil && status.Leader == status.Header.MemberId {
			return n
		}
	}
	return nil
}
