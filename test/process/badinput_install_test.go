package process_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBadInput_killedInstall kills a member again and again while it receives and installs a snapshot. Every start
// must find its way, and in the end the member has what the others have. Without its data it may not come back, for it
// would vote as if it had acknowledged nothing.
func TestBadInput_killedInstall(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := startCluster(t, 3)
	behind, others := c.nodes[2], c.nodes[:2]
	client := c.connect(others...)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	behind.kill()
	const keys, rounds = 10, 10 // of a megabyte each: more than the others keep of the log
	for i := range keys * rounds {
		noise := make([]byte, 1<<20) // does not compress, so that the snapshot takes its time
		for j := range noise {
			noise[j] = byte(random.Uint32())
		}
		if _, err := client.Put(ctx, fmt.Sprint("key", i%keys), fmt.Sprint(i, "i")+string(noise)); err != nil {
			t.Fatal(err)
		}
	}
	for range 6 {
		c.start(behind)
		select {
		case <-time.After(time.Duration(random.IntN(350)) * time.Millisecond):
		case <-behind.exited:
			t.Fatalf("a start after a kill was refused:\n%s", tail(behind.log, 1000))
		}
		behind.kill()
	}
	c.start(behind)
	c.waitReady(behind)
	own := c.connect(behind)
	defer own.Close()
	for k := range keys {
		got, err := own.Get(ctx, fmt.Sprint("key", k))
		if err != nil || len(got.Kvs) != 1 || !strings.HasPrefix(string(got.Kvs[0].Value), fmt.Sprint(keys*(rounds-1)+k, "i")) {
			t.Errorf("key%d: it was acknowledged and is gone or different: %v", k, err)
		}
	}
	if _, err := os.Stat(filepath.Join(behind.dir, "member", "stores", "1")); !os.IsNotExist(err) {
		t.Errorf("no snapshot was installed, nothing was tested: %v", err)
	}
}
