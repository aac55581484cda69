package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/history"
)

const (
	clients    = 6
	faultTime  = 20 * time.Second
	checkLimit = 60 * time.Second
)

// TestCluster_killed loads three processes while members are killed, restarted and cut off, kills all at once, and
// then looks for every acknowledged write and for an order of all operations that explains what clients were told.
func TestCluster_killed(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := startCluster(t, 3)
	record := history.NewRecorder()
	ctx, stop := context.WithCancel(context.Background())
	var load sync.WaitGroup
	for id := range clients {
		client := c.connect(c.nodes[id%3], c.nodes[(id+1)%3], c.nodes[(id+2)%3])
		defer client.Close()
		random := rand.New(rand.NewPCG(seed, uint64(id)))
		load.Go(func() { history.RunClient(ctx, client, id, random, record) })
	}
	faults := torment(t, c, rand.New(rand.NewPCG(seed, 1<<32)))
	until(t, "100 writes are acknowledged", func(context.Context) bool { return record.AckedWrites() >= 100 })
	stop()
	load.Wait()

	for _, n := range c.nodes {
		n.kill()
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	for _, n := range c.nodes {
		c.waitReady(n)
	}
	acked := checkAcknowledged(t, c, record)
	t.Logf("%d operations, %d acknowledged writes, faults: %v", record.Len(), acked, faults)
	checkHistory(t, record)
	checkInferred(t, c)
}

// checkInferred wants a member that found commits by itself: else the rest proves nothing of it.
func checkInferred(t *testing.T, c *cluster) {
	t.Helper()
	client := c.connect(c.nodes...)
	defer client.Close()
	for i := range 300 {
		if _, err := client.Put(context.Background(), fmt.Sprintf("inferred%d", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	var values []string
	for _, n := range c.nodes {
		answer, err := http.Get(n.client + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		value := regexp.MustCompile(`(?m)^quorate_proposals_inferred_total (.*)$`).FindSubmatch(text)
		if value != nil && string(value[1]) != "0" {
			return
		}
		values = append(values, fmt.Sprintf("%q", value))
	}
	t.Errorf("nobody found a commit by itself: %v", values)
}

// checkHistory looks for an order of all operations that explains what clients were told.
func checkHistory(t *testing.T, record *history.Recorder) {
	t.Helper()
	if wrong := record.Check(checkLimit); wrong != "" {
		t.Error(wrong)
	}
}

// last lets a fault, or what comes before one, last. How long is a part of what is tested: no client waits for anything then.
func last(d time.Duration) { <-time.After(d) }

// torment kills, restarts and cuts members until the time is over, never more than one at once, and leaves all up.
func torment(t *testing.T, c *cluster, random *rand.Rand) map[string]int {
	t.Helper()
	faults := map[string]int{}
	for end := time.Now().Add(faultTime); time.Now().Before(end); {
		n := c.nodes[random.IntN(len(c.nodes))]
		pause := time.Duration(200+random.IntN(1200)) * time.Millisecond
		switch random.IntN(3) {
		case 0:
			faults["kill"]++
			n.kill()
			last(pause)
			c.start(n)
		case 1:
			faults["cut"]++
			n.proxy.cut()
			last(pause)
			n.proxy.heal()
		default:
			faults["isolate"]++
			n.isolate(t)
			last(pause)
			n.rejoin(t)
		}
		c.waitReady(n)
	}
	return faults
}

// checkAcknowledged reads every acknowledged write at its revision.
func checkAcknowledged(t *testing.T, c *cluster, record *history.Recorder) int {
	t.Helper()
	client := c.connect(c.nodes...)
	defer client.Close()
	count := 0
	for key, writes := range record.Acked() {
		for revision, value := range writes {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			got, err := client.Get(ctx, key, clientv3.WithRev(revision))
			cancel()
			if err != nil {
				t.Fatalf("%s at %d: %v", key, revision, err)
			}
			if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != value || got.Kvs[0].ModRevision != revision {
				t.Errorf("%s at %d: got %v, acknowledged was %q", key, revision, got.Kvs, value)
			}
			count++
		}
	}
	return count
}
