package robustness_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/server"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

var flips = flag.Int("flips", 12, "how many bits are flipped, one at a time")

// TestFlippedBits flips one bit in a file of one member, which is then started with the others: it refuses to start and
// says why, or it is healed, or the bit did not matter. It never serves a wrong value.
func TestFlippedBits(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := newCluster(t, 3)
	c.start()
	want, ever := map[string]string{}, map[string]bool{}
	ctx, client := within(t), c.connect(0)
	for i := range 400 {
		key, value := fmt.Sprint("k", i%150), fmt.Sprint(i, strings.Repeat("v", random.IntN(2000)))
		put(t, ctx, client, key, value)
		want[key], ever[key+" "+value] = value, true
	}
	for _, m := range c.machines {
		if _, err := client.Defragment(ctx, m.client); err != nil { // some of it is in tables
			t.Fatal(err)
		}
	}
	for i := range 100 { // and some in the log alone
		key, value := fmt.Sprint("k", i), fmt.Sprint("last", i)
		put(t, ctx, client, key, value)
		want[key], ever[key+" "+value] = value, true
	}
	sameHashes(t, ctx, c)
	c.stop()
	disks := make([]*filestest.MemFS, len(c.machines))
	for i, m := range c.machines {
		disks[i] = m.disk
	}
	refused := 0
	for range *flips {
		for i, m := range c.machines {
			m.disk, m.server = disks[i].CrashClone(filestest.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: random}), nil
		}
		which := random.IntN(len(c.machines))
		where := flip(t, c.machines[which].disk, fmt.Sprintf("/m%d", which+1), random)
		err := c.startFlipped(which)
		if err != nil {
			refused++
			t.Logf("%s: refused: %v", where, err)
			if len(err.Error()) < 40 {
				t.Errorf("%s: the refusal does not say what to do: %v", where, err)
			}
		} else {
			served(t, c, which, want, ever, where)
		}
		c.stop()
	}
	t.Logf("%d of %d flips were refused", refused, *flips)
}

// flip flips one bit somewhere below a directory and returns where.
func flip(t *testing.T, fs *filestest.MemFS, dir string, random *rand.Rand) string {
	t.Helper()
	var files []string
	var walk func(dir string)
	walk = func(dir string) {
		names, err := fs.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		for _, name := range names {
			full := path.Join(dir, name)
			stat, err := fs.Stat(full)
			if err != nil {
				t.Fatal(err)
			}
			if stat.IsDir() {
				walk(full)
			} else if stat.Size() > 0 {
				files = append(files, full)
			}
		}
	}
	walk(dir)
	name := files[random.IntN(len(files))]
	file, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	// The used part of a log that was made larger in advance lies at its beginning.
	used := len(strings.TrimRight(string(content), "\x00"))
	at := random.IntN(max(used, 1))
	content[at] ^= 1 << random.IntN(8)
	changed, err := fs.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := changed.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := changed.Sync(); err != nil {
		t.Fatal(err)
	}
	_ = changed.Close()
	return fmt.Sprintf("%s, byte %d of %d", name, at, used)
}

// startFlipped starts all members and returns why one of them did not start. The others must.
func (c *cluster) startFlipped(which int) (refusal error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	others := make(chan error, len(c.machines))
	var starting sync.WaitGroup
	for i, m := range c.machines {
		starting.Go(func() {
			options, err := config.Load(m.args, nil)
			if err == nil {
				m.server, err = server.Start(ctx, options, server.Options{
					Logger: slog.New(slog.NewTextHandler(&m.log, nil)), FS: c.powered(m.disk), Fatal: func(error) {},
				})
			}
			if i == which {
				refusal = err
				return
			}
			others <- err
		})
	}
	for range len(c.machines) - 1 {
		if err := <-others; err != nil {
			c.t.Fatalf("a member whose disk is whole does not start: %v", err)
		}
	}
	flipped := make(chan struct{})
	go func() {
		starting.Wait()
		close(flipped)
	}()
	select {
	case <-flipped:
	case <-time.After(10 * time.Second): // it waits for an operator to help it, which it says in its log
		cancel()
		<-flipped
	}
	return refusal
}

// served reads everything through the flipped member, which may fail but not lie, and through the others.
func served(t *testing.T, c *cluster, which int, want map[string]string, ever map[string]bool, where string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	flipped, whole := c.only(which), c.only((which+1)%3, (which+2)%3)
	for key, value := range want {
		got, err := whole.Get(ctx, key)
		if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != value {
			t.Fatalf("%s: the others lost %s: %v", where, key, err)
		}
		for _, options := range [][]clientv3.OpOption{nil, {clientv3.WithSerializable()}} {
			short, end := context.WithTimeout(ctx, 2*time.Second)
			got, err := flipped.Get(short, key, options...)
			end()
			if err != nil {
				return // it noticed
			}
			// A value that it serves by itself may be of the past, but must have been true then.
			lied := len(got.Kvs) == 1 && !ever[key+" "+string(got.Kvs[0].Value)]
			if lied || options == nil && (len(got.Kvs) != 1 || string(got.Kvs[0].Value) != value) {
				t.Errorf("%s: %s is served as %.40v, want %.40q", where, key, got.Kvs, value)
			}
		}
	}
}
