package robustness_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/test/history"
)

var losses = flag.Int("losses", 4, "how often the power is lost in each test")

// TestPowerLoss lets three members, and five on the fast path, lose power at once, again and again, under load. No
// acknowledged append or write may be lost, doubled or reordered, and no reader may see what is gone later.
func TestPowerLoss(t *testing.T) {
	for _, tc := range []struct {
		name  string
		size  int
		flags []string
	}{
		{"three members", 3, nil},
		{"five members on the fast path", 5, []string{"--fast-path=always"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, newCluster(t, tc.size, tc.flags...))
		})
	}
}

func run(t *testing.T, c *cluster) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	lists, record := history.NewLists(), history.NewRecorder()
	c.start()
	ctx, stop := context.WithCancel(context.Background())
	var load sync.WaitGroup
	for id := range 4 {
		client := c.connect(id)
		load.Go(func() { history.RunAppender(ctx, client, id, rand.New(rand.NewPCG(seed, uint64(2*id+1))), lists) })
		load.Go(func() { history.RunClient(ctx, client, id, rand.New(rand.NewPCG(seed, uint64(2*id+2))), record) })
	}
	for range *losses {
		awaitAppends(t, lists, 5+random.IntN(90))
		lists.LosePower()
		record.LosePower()
		c.losePower(random)
		lists.PowerBack()
		record.PowerBack()
		c.start()
	}
	awaitAppends(t, lists, 10)
	awaitLoad(t, lists, record)
	stop()
	load.Wait()
	check(t, c.connect(0), lists, record)
}

// awaitAppends waits until so many more appends were acknowledged. The cluster serves, so that they must be.
func awaitAppends(t *testing.T, lists *history.Lists, more int) {
	t.Helper()
	await(t, "appends", lists.Acked, lists.Acked()+more)
}

// leastLoad is how many appends, and how many writes of registers, must be acknowledged: a shorter history proves nothing.
const leastLoad = 20

// awaitLoad waits until both are. The cluster serves, and the load goes on.
func awaitLoad(t *testing.T, lists *history.Lists, record *history.Recorder) {
	t.Helper()
	await(t, "appends", lists.Acked, leastLoad)
	await(t, "writes", record.AckedWrites, leastLoad)
}

func await(t *testing.T, what string, acked func() int, want int) {
	t.Helper()
	look, limit := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer look.Stop()
	for acked() < want {
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("%d %s were acknowledged, want %d", acked(), what, want)
		}
	}
}

func check(t *testing.T, client *clientv3.Client, lists *history.Lists, record *history.Recorder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	wrong, err := lists.CheckNow(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	writes := 0
	for key, acked := range record.Acked() {
		for revision, value := range acked {
			writes++
			got, err := client.Get(ctx, key, clientv3.WithRev(revision))
			if errors.Is(err, rpctypes.ErrCompacted) {
				continue
			}
			if err != nil {
				t.Fatalf("%s at %d: %v", key, revision, err)
			}
			if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != value || got.Kvs[0].ModRevision != revision {
				t.Errorf("%s at %d: got %v, acknowledged was %q", key, revision, got.Kvs, value)
			}
		}
	}
	if wrong := record.Check(time.Minute); wrong != "" {
		t.Error(wrong)
	}
	t.Logf("%d appends and %d writes were acknowledged", lists.Acked(), writes)
	if lists.Acked() < leastLoad || writes < leastLoad {
		t.Error("the cluster hardly worked")
	}
}
