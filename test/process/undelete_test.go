package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// undone is what `quorate undelete -o json` prints after the plan.
type undone struct {
	Restored int
	Came     struct{ Same, Other int }
}

// undelete runs the command against all members, and returns the last line of its output, its errors and its status.
func (c *cluster) undelete(args ...string) (done undone, errs string, status int) {
	var endpoints []string
	for _, n := range c.nodes {
		endpoints = append(endpoints, n.client)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, c.binary, append([]string{"undelete", "-o", "json", "--timeout=20s",
		"--endpoints=" + strings.Join(endpoints, ",")}, args...)...)
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		status = exit.ExitCode()
	} else if err != nil {
		return done, err.Error(), -1
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		if err := json.Unmarshal([]byte(last), &done); err != nil {
			return done, err.Error(), -1
		}
	}
	return done, said.String(), status
}

// fillPrefix writes keys below a prefix, and returns the revision of the last one.
func fillPrefix(t *testing.T, ctx context.Context, client *clientv3.Client, prefix string, keys int, value func(i int) string) (revision int64) {
	t.Helper()
	for i := 0; i < keys; {
		var ops []clientv3.Op
		for ; i < keys && len(ops) < 100; i++ {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("%s%05d", prefix, i), value(i)))
		}
		answer, err := client.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			t.Fatal(err)
		}
		revision = answer.Header.Revision
	}
	return revision
}

// Ensure that two operators who restore a prefix at once, while a client writes there and the leader is killed, write each key once,
// with the value that it had, and that what was compacted is said to be.
func TestUndelete(t *testing.T) {
	t.Parallel()
	const keys, own = 6000, 40
	c := startCluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	client := c.connect(c.nodes...)
	defer client.Close()
	value := func(i int) string { return fmt.Sprintf("value %d %s", i, strings.Repeat("v", i%500)) }
	old := fillPrefix(t, ctx, client, "gone/", 3, value)
	if _, err := client.Delete(ctx, "gone/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	before := fillPrefix(t, ctx, client, "app/", keys, value)
	if _, err := client.Compact(ctx, before); err != nil {
		t.Fatal(err)
	}
	removed, err := client.Delete(ctx, "app/", clientv3.WithPrefix())
	if err != nil || removed.Deleted != keys {
		t.Fatalf("%v, %v", removed, err)
	}
	events := client.Watch(ctx, "app/", clientv3.WithPrefix(), clientv3.WithRev(removed.Header.Revision+1))
	if _, err := client.Put(ctx, "app/00003", "a client's"); err != nil {
		t.Fatal(err)
	}
	results := make(chan undone, 2)
	for range cap(results) {
		go func() {
			done, errs, status := c.undelete("app/", "--yes", "--limit=100000")
			if status != 0 {
				t.Errorf("status %d: %s", status, errs)
			}
			results <- done
		}()
	}
	writes := map[string]int{}
	killed := false
	for answer := range events {
		if err := answer.Err(); err != nil {
			t.Fatal(err)
		}
		for _, e := range answer.Events {
			if writes[string(e.Kv.Key)]++; e.Type != mvccpb.PUT {
				t.Errorf("%s was deleted", e.Kv.Key)
			}
		}
		if len(writes) > keys/10 && !killed {
			killed = true
			c.leaderFirst()[0].kill()
			for i := range own { // of the last keys
				key := fmt.Sprintf("app/%05d", keys-1-i)
				_, _ = client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
					Then(clientv3.OpPut(key, "a client's")).Commit()
			}
		}
		if len(writes) == keys {
			break
		}
	}
	restored := 0
	for range cap(results) {
		done := <-results
		t.Logf("%+v", done)
		if restored += done.Restored; done.Came.Other > own || done.Restored+done.Came.Same+done.Came.Other > keys-1 {
			t.Errorf("%+v", done)
		}
	}
	if !killed || restored < keys-1-own {
		t.Errorf("killed %v, %d restored", killed, restored)
	}
	c.checkRestored(ctx, t, client, keys, own, value)
	for key, times := range writes {
		if times != 1 {
			t.Errorf("%s was written %d times", key, times)
		}
	}
	if done, errs, status := c.undelete("app/", "--yes", "--limit=100000"); status != 0 || done.Restored != 0 {
		t.Errorf("again: %+v, status %d, %s", done, status, errs)
	}
	if _, errs, status := c.undelete("gone/", "--yes"); status != 1 || !strings.Contains(errs, fmt.Sprintf("since revision %d", before)) {
		t.Errorf("what is compacted: status %d, %s", status, errs)
	}
	if _, errs, status := c.undelete("gone/", "--yes", fmt.Sprint("--at=", old)); status != 1 || !strings.Contains(errs, "is compacted") {
		t.Errorf("at a compacted revision: status %d, %s", status, errs)
	}
}

// checkRestored compares all keys with what they were, or with what a client wrote.
func (c *cluster) checkRestored(ctx context.Context, t *testing.T, client *clientv3.Client, keys, own int, value func(i int) string) {
	t.Helper()
	found := 0
	for from := "app/"; ; {
		page, err := client.Get(ctx, from, clientv3.WithRange("app0"), clientv3.WithLimit(2000))
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range page.Kvs {
			want := value(found)
			if found == 3 || found >= keys-own && string(kv.Value) == "a client's" {
				want = "a client's"
			}
			if string(kv.Key) != fmt.Sprintf("app/%05d", found) || string(kv.Value) != want || kv.Version != 1 {
				t.Fatalf("key %d is %s, version %d, %.40q; want %.40q", found, kv.Key, kv.Version, kv.Value, want)
			}
			found++
		}
		if from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"; !page.More {
			break
		}
	}
	if found != keys {
		t.Errorf("%d keys of %d", found, keys)
	}
}
