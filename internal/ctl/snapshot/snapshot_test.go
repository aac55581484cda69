package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
	"github.com/quorate/quorate/internal/ctl/snapshot"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
)

// database makes a file without a checksum, as a stopped etcd leaves it.
func database(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "db")
	w, err := etcdbackup.Create(context.Background(), name, etcdbackup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := kv.KeyValue{Key: []byte("a"), Value: []byte("1"), CreateRevision: 2, ModRevision: 2, Version: 1}
	err = errors.Join(w.Change(2, []kv.Event{{KV: p}}), w.Meta(&etcdbackup.Meta{Storage: "3.7.0", Cluster: "3.7.1"}), w.Finish(),
		w.Close())
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func run(t *testing.T, args ...string) ctltest.Result {
	t.Helper()
	return ctltest.Run(t, t.Context(), command.Streams{}, "", append([]string{"snapshot"}, args...)...)
}

func TestStatus(t *testing.T) {
	file := database(t)
	run(t, "status", file, "-o", "simple").Want(t, 0, "efc84184, 2, 1, 24.0 KiB, 3.7.0\n", "")
	run(t, "status", file, "-w", "json").Want(t, 0,
		`{"hash":4022878596,"revision":2,"totalKey":1,"totalSize":24576,"version":"3.7.0"}`+"\n", "")
	run(t, "status", file).Want(t, 0, "HASH      REVISION  KEYS  SIZE      VERSION\nefc84184  2         1     24.0 KiB  "+
		"3.7.0\n", "")
	run(t, "status", file, "-o", "xml").Want(t, command.StatusUsage, "", `--output "xml": choose table, json or simple`)
	run(t, "status", file+"x").Want(t, command.StatusRefused, "", "dbx: no such file or directory")
	if err := os.Truncate(file, 8192); err != nil {
		t.Fatal(err)
	}
	run(t, "status", file).Want(t, command.StatusRefused, "", "the file is damaged: it should have 6 pages of 4096 bytes and "+
		"has 2")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "status", file).Want(t, command.StatusRefused, "", "this is no snapshot and no database of etcd")
}

// Ensure that save replaces no file that is no snapshot; it says so before it asks the cluster.
func TestSave_replacesNothingElse(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "save", text).Want(t, command.StatusRefused, "", "exists and is no snapshot; it was not replaced")
	run(t, "save", dir).Want(t, command.StatusRefused, "", "exists and is no file")
	run(t, "save", database(t)).Want(t, command.StatusRefused, "", "is the database of an etcd, not a snapshot")
	if content, err := os.ReadFile(text); err != nil || string(content) != "precious" {
		t.Errorf("got %q, %v", content, err)
	}
}

func TestRestore_words(t *testing.T) {
	var asked snapshot.Request
	tools := ctl.Tools{Restore: func(_ context.Context, r *snapshot.Request) (*snapshot.Restored, error) {
		asked = *r
		if r.From == "bad" {
			return nil, etcdbackup.ErrHash
		}
		return &snapshot.Restored{DataDir: "d", Member: "m1", MemberID: "a", ClusterID: "b", Members: 3, Revision: 9, Keys: 1,
			Leases: 2, Auth: true, Users: 2, Roles: 1, Alarms: 1}, nil
	}}
	do := func(args ...string) ctltest.Result {
		var out, errs bytes.Buffer
		s := command.Streams{Out: &out, Err: &errs}
		status := ctl.RunWith(t.Context(), append([]string{"snapshot", "restore"}, args...), s, tools)
		return ctltest.Result{Status: status, Out: out.String(), Err: errs.String()}
	}
	do("s.db", "--data-dir=d", "--name=m1", "--initial-cluster=m1=http://a:1").Want(t, 0, `restored d from s.db
  contents  revision 9, with all history; 1 key, 2 leases
  users     2 users, 1 role; authentication is on
  member    m1 (a), of 3; cluster b
  left out  1 alarm of the members that wrote the file
first: if other members of the old cluster run and serve, do not go on: what was written since s.db was made would be lost. `+
		"To go back to this state, stop them all. If only m1 was lost, move d aside, start it with an empty directory and its flags, "+
		"--initial-cluster or --join among them, and run `quorate member reset m1` at a "+`member that serves
next: if none serves, do the same for the other members, from the same file, then start all; this one with --data-dir d
`, "")
	if len(asked.Member) != 2 || asked.Member[0] != "--name=m1" || asked.DataDir != "d" || asked.SkipHashCheck {
		t.Errorf("asked for %+v", asked)
	}
	do("s.db", "--bump-revision=5").Want(t, command.StatusUsage, "", "--bump-revision and --mark-compacted need each other")
	do("s.db", "--mark-compacted").Want(t, command.StatusUsage, "", "need each other")
	do("bad").Want(t, command.StatusRefused, "", "the checksum at the end of the file does not match")
}
