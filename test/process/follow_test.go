package process_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorate/quorate/client"
)

// TestNativeClient_everyMemberReplaced replaces all members, one after the other, while two native clients that were given the
// first one alone are at work: one writes and watches, the other only reads, now and then. Neither is told where the new members
// are. Each write is applied once, the watch tells of each in order, and reads go on.
func TestNativeClient_everyMemberReplaced(t *testing.T) {
	t.Parallel()
	e := startElastic(t)
	first := e.nodes[0]
	e.grow("m2")
	e.grow("m3")
	given := client.Config{Endpoints: []string{first.client}, DialTimeout: time.Second, Logger: zap.NewNop()}
	writer, reader := following(t, given), following(t, given)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	seen := make(chan string, 1<<20)
	var load sync.WaitGroup
	load.Go(func() {
		for r := range writer.Watch(ctx, "follow", clientv3.WithCreatedNotify()) {
			for _, event := range r.Events {
				seen <- string(event.Kv.Value)
			}
		}
	})
	written := make(chan int, 1<<20)
	load.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := writer.Put(context.Background(), "follow", strconv.Itoa(i)); err != nil {
				t.Errorf("put %d: %v", i, err)
				return
			}
			written <- i
		}
	})
	readsAndWrites := func(when string) {
		t.Helper()
		until(t, when+": the reader reads what the writer writes", func(asked context.Context) bool {
			asked, cancel := context.WithTimeout(asked, time.Second)
			defer cancel()
			_, err := reader.Get(asked, "follow")
			return err == nil
		})
		for len(written) > 0 {
			<-written
		}
		select {
		case <-written:
		case <-time.After(patience):
			t.Fatalf("%s: nothing was written for %v; writes go to %v", when, patience, writer.Endpoints())
		}
	}
	readsAndWrites("at first")
	for i := range 3 {
		old := e.nodes[0]
		e.grow(fmt.Sprintf("m%d", i+4))
		e.shrink(old)
		readsAndWrites(old.name + " was replaced")
	}
	last, err := writer.Get(ctx, "follow")
	if err != nil {
		t.Fatal(err)
	}
	next := -1
	for value := ""; value != string(last.Kvs[0].Value); {
		select {
		case value = <-seen:
		case <-time.After(patience):
			t.Fatalf("the watch told of %d last, and not of %s for %v", next, last.Kvs[0].Value, patience)
		}
		n, _ := strconv.Atoi(value)
		if next >= 0 && n != next+1 {
			t.Fatalf("the watch told of %d after %d", n, next)
		}
		next = n
	}
	stop()
	load.Wait()
	end, err := reader.Get(context.Background(), "follow")
	if err != nil || end.Kvs[0].Version == 0 {
		t.Fatal(err)
	}
	if n, _ := strconv.ParseInt(string(end.Kvs[0].Value), 10, 64); end.Kvs[0].Version != n+1 {
		t.Errorf("write %d is version %d of its key", n, end.Kvs[0].Version)
	}
}

func following(t *testing.T, config client.Config) *client.Client {
	t.Helper()
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
