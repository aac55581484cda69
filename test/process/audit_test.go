package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// audit runs `quorate audit` as root, and returns what it prints and its status.
func (c *cluster) audit(words ...string) (out string, status int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, c.binary, append(append([]string{"audit"}, words...), "--user=root:rootpw",
		"--endpoints="+c.nodes[0].client)...)
	printed, err := command.CombinedOutput()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		status = exit.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	return string(printed), status
}

// setAudit sets a policy that records all changes.
func (c *cluster) setAudit() {
	c.t.Helper()
	policy := filepath.Join(c.t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(`{"rules": [{"level": "none", "operations": ["range", "login"]},
		{"level": "metadata"}]}`), 0o600); err != nil {
		c.t.Fatal(err)
	}
	until(c.t, "the policy is set", func(context.Context) bool {
		said, status := c.audit("policy", "set", policy)
		if status != 0 && !strings.Contains(said, "feature level 2") {
			c.t.Fatal(said)
		}
		return status == 0
	})
}

// Ensure that what two users do is recorded and verifies, and that an edited byte, a cut, and a file that was removed are found
// with their places, also by heads that were saved before.
func TestAudit_tampering(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.log")
	collected, collector := collectLogs(t)
	c := startCluster(t, 1, "--level-policy=now", "--audit-log="+file+",otlp://"+collector)
	n := c.nodes[0]
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	plain := c.connect(n)
	enableAuth(t, ctx, plain)
	_ = plain.Close()
	c.setAudit()
	alice, root := c.login("alice", n), c.login("root", n)
	for i := range 20 {
		_, err := alice.Put(ctx, fmt.Sprintf("a%d", i), "SECRET")
		if _, other := root.Put(ctx, fmt.Sprintf("r%d", i), "SECRET"); errors.Join(err, other) != nil {
			t.Fatal(err, other)
		}
	}
	if _, err := alice.Put(ctx, "r1", "SECRET"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "heads")
	until(t, "a head covers the last record", func(context.Context) bool {
		heads, status := c.audit("heads")
		if status != 0 {
			t.Fatal(heads)
		}
		if err := os.WriteFile(saved, []byte(heads), 0o600); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(heads, `"file":"audit.log"`)
	})
	records, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"user":"alice"`, `"user":"root"`, `"key":"a7"`, `"key":"r19"`, `"decision":"denied"`} {
		if !bytes.Contains(records, []byte(want)) {
			t.Errorf("no record has %s", want)
		}
	}
	until(t, "the collector has the records, too", func(context.Context) bool {
		text := collected.text()
		return strings.Contains(text, `"key":"a7"`) && strings.Contains(text, `"decision":"denied"`)
	})
	if bytes.Contains(records, []byte("SECRET")) || strings.Contains(collected.text(), "SECRET") {
		t.Error("a record has a value")
	}
	if said, status := c.audit("verify", file); status != 0 || !strings.Contains(said, "intact: ") {
		t.Errorf("status %d: %s", status, said)
	}
	n.kill() // the cluster is gone: heads that were saved are enough
	copied := filepath.Join(t.TempDir(), "copied.log")
	lines := bytes.SplitAfter(records, []byte("\n"))
	for name, row := range map[string]struct {
		file []byte
		want string
	}{
		"a byte was edited": {bytes.Replace(records, []byte(`"key":"a7"`), []byte(`"key":"b7"`), 1), "was changed: the sum does not agree"},
		"the end was cut":   {bytes.Join(lines[:10], nil), "are missing behind the end of " + copied},
		"a record is gone":  {bytes.Join(append(append([][]byte{}, lines[:9]...), lines[10:]...), nil), "record 10 is missing, between record 9 ("},
		"nothing":           {records, "intact: "},
	} {
		if err := os.WriteFile(copied, row.file, 0o600); err != nil {
			t.Fatal(err)
		}
		said, status := c.audit("verify", "--heads", saved, copied)
		if whole := status == 0; whole != (name == "nothing") || !strings.Contains(said, row.want) {
			t.Errorf("%s: status %d: %s", name, status, said)
		}
	}
	c.start(n)
	_ = c.login("alice", n)
	until(t, "the chain goes on", func(context.Context) bool {
		again, err := os.ReadFile(file)
		return err == nil && bytes.HasPrefix(again, records) && bytes.Contains(again, []byte(`"why":"resumes"`))
	})
	if said, status := c.audit("verify", file); status != 0 || !strings.Contains(said, "ended without its last record") {
		t.Errorf("after a crash: status %d: %s", status, said)
	}
}

// refusedForAudit reports whether a call was refused since it could not be recorded.
func refusedForAudit(err error) bool {
	return err != nil && strings.Contains(err.Error(), "audit: this call")
}

// putAs writes one key.
func putAs(ctx context.Context, client *clientv3.Client, key string) error {
	bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	_, err := client.Put(bounded, key, "v")
	return err
}
