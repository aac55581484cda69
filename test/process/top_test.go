package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// topRows is what `quorate top -o json` prints, as far as tests look at it.
type topRows struct {
	Members []struct{ Error string }
	Rows    []struct {
		Prefix, Operation, User string
		Ops, Watchers           float64
	}
}

// top runs the command as a user against the first member, which tells of the others.
func (c *cluster) top(user string, more ...string) (topRows, string, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, c.binary, append([]string{"top", "--once", "-o", "json",
		"--endpoints=" + c.nodes[0].client, "--user=" + user + ":" + user + "pw"}, more...)...)
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	var rows topRows
	if err == nil {
		err = json.Unmarshal(out, &rows)
	}
	return rows, errors.String(), err
}

// Ensure that the busiest prefix and user of a cluster are named first, by whichever members their calls came, with the watchers of
// a prefix, and that only root is told.
func TestTop(t *testing.T) {
	t.Parallel()
	const heavy, light, watchers = 2400, 300, 6
	c := startCluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	enableAuth(t, ctx, c.connect(c.nodes[0]))
	root, alice := c.login("root", c.nodes...), c.login("alice", c.nodes[1])
	allow(t, ctx, root)
	for i := range watchers {
		if answer := <-root.Watch(ctx, fmt.Sprintf("quiet/w/x/%d", i), clientv3.WithCreatedNotify()); !answer.Created {
			t.Fatalf("not created: %+v", answer)
		}
	}
	var all sync.WaitGroup
	load := func(client *clientv3.Client, prefix string, calls int) {
		all.Go(func() {
			for i := range calls {
				if _, err := client.Put(ctx, fmt.Sprintf("%s%d", prefix, i%50), "v"); err != nil {
					t.Errorf("put: %v", err)
					return
				}
			}
		})
	}
	for range 8 {
		load(alice, "hot/of/alice/", heavy/8)
	}
	load(root, "calm/of/root/", light)
	all.Wait()
	prefixes, errors, err := c.top("root", "--window=5m")
	if err != nil || len(prefixes.Members) != 3 || len(prefixes.Rows) < 2 {
		t.Fatalf("%v: %+v, %s", err, prefixes, errors)
	}
	if first := prefixes.Rows[0]; first.Prefix != "hot/of/alice/" || first.Operation != "put" || first.Ops < 2*prefixes.Rows[1].Ops {
		t.Errorf("prefixes: %+v", prefixes.Rows)
	}
	clients, errors, err := c.top("root", "--window=5m", "--clients")
	if err != nil || clients.Rows[0].User != "alice" || clients.Rows[1].User != "root" || clients.Rows[1].Watchers != watchers {
		t.Errorf("%v: clients: %+v, %s", err, clients.Rows, errors)
	}
	watched, errors, err := c.top("root", "--by=watchers", "--rows=1")
	if err != nil || watched.Rows[0].Prefix != "quiet/w/x/" || watched.Rows[0].Watchers != watchers {
		t.Errorf("%v: watched: %+v, %s", err, watched.Rows, errors)
	}
	if rows, errors, err := c.top("alice"); err == nil || !strings.Contains(errors, "alice has no role that allows it") {
		t.Errorf("alice is told %+v, %s", rows, errors)
	}
}

// allow lets alice write below hot/.
func allow(t *testing.T, ctx context.Context, root *clientv3.Client) {
	t.Helper()
	both := clientv3.PermissionType(clientv3.PermReadWrite)
	for _, do := range []func() error{
		func() error { _, err := root.RoleAdd(ctx, "hot"); return err },
		func() error {
			_, err := root.RoleGrantPermission(ctx, "hot", "hot/", clientv3.GetPrefixRangeEnd("hot/"), both)
			return err
		},
		func() error { _, err := root.UserGrantRole(ctx, "alice", "hot"); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
}
