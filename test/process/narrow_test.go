package process_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// Ensure that a burst of writes crosses narrow links once, and that small writes go on after it.
func TestCluster_narrowLinks(t *testing.T) {
	const puts, valueBytes, rate = 40, 192 << 10, 4_000_000
	c := startCluster(t, 3, "--fast-path=never", "--heartbeat-interval=100", "--election-timeout=1000")
	nodes := c.leaderFirst()
	client := c.connect(nodes[0])
	defer client.Close()
	before := map[*node]int64{}
	for _, n := range nodes[1:] {
		n.proxy.rate.Store(rate)
		before[n] = n.proxy.carried.Load()
	}
	random := rand.NewChaCha8([32]byte{1})
	var burst sync.WaitGroup
	for i := range puts {
		value := make([]byte, valueBytes)
		_, _ = random.Read(value)
		burst.Go(func() {
			if _, err := client.Put(t.Context(), fmt.Sprintf("burst/%d", i), string(value)); err != nil {
				t.Errorf("put %d of the burst: %v", i, err)
			}
		})
	}
	burst.Wait()
	for i := range 10 {
		if _, err := client.Put(t.Context(), "small", fmt.Sprint(i)); err != nil {
			t.Fatalf("small put %d: %v", i, err)
		}
	}
	for _, n := range nodes[1:] {
		reader := c.connect(n)
		if _, err := reader.Get(t.Context(), "small"); err != nil { // it waits until n has all
			t.Errorf("read at %s: %v", n.name, err)
		}
		_ = reader.Close()
		const most = puts * valueBytes * 11 / 10
		if got := n.proxy.carried.Load() - before[n]; got > most {
			t.Errorf("%d bytes went to %s for %d of values, want %d at most", got, n.name, puts*valueBytes, most)
		}
	}
}
