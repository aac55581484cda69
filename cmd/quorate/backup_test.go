package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/snapshot"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects/directory"
)

// shipped makes a place with the backup of a cluster that wrote k0, k1, … and the states after each of these entries.
func shipped(t *testing.T, entries int) (dir string, heads []backup.Head) {
	t.Helper()
	return shippedTo(t, entries, nil)
}

func shippedTo(t *testing.T, entries int, lock *backup.Lock) (dir string, heads []backup.Head) {
	t.Helper()
	dir = t.TempDir()
	n := 0
	place, err := directory.Open(files.Disk, dir, directory.Options{Now: time.Now,
		Unique: func() string { n++; return fmt.Sprint(n) }})
	if err != nil {
		t.Fatal(err)
	}
	var commands []kv.Command
	for i := range entries {
		commands = append(commands, kv.Command{Put: &kv.PutOp{Key: []byte(fmt.Sprint("k", i)), Value: []byte(strings.Repeat("v", 100))}})
	}
	return dir, backuptest.ShipLocked(t, place, lock, commands)
}

// quorate runs a command line.
func quorate(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(args, command.Streams{In: strings.NewReader(""), Out: &o, Err: &e, Self: "quorate"})
	return status, o.String(), e.String()
}

// A backup is listed, proved, planned and restored by commands: as of the latest state, a time, a revision and an entry; two members
// restored to one entry are of one cluster, and the directory is not a used one afterwards.
func TestBackup(t *testing.T) {
	dir, heads := shipped(t, 30)
	from := "--from=file://" + dir
	last := heads[len(heads)-1]
	if status, out, errs := quorate(t, "backup", "list", from); status != 0 || strings.Count(out, "\nbase") < 2 ||
		!strings.Contains(out, fmt.Sprintf("entries 1 to %d", last.Index)) {
		t.Errorf("list: %d %s %s", status, out, errs)
	}
	if status, out, errs := quorate(t, "backup", "verify", from); status != 0 || !strings.Contains(out, fmt.Sprintf("%016x", last.Sum)) {
		t.Errorf("verify: %d %s %s", status, out, errs)
	}
	at := heads[9]
	var clusters []string
	for _, word := range []string{"entry:10", backup.Time(at.Time), fmt.Sprint(at.Revision)} {
		data := filepath.Join(t.TempDir(), "m1")
		status, out, errs := quorate(t, "restore", from, "--at", word, "--data-dir", data, "--name", "m1", "-o", "json",
			"--initial-cluster", "m1=http://127.0.0.1:1,m2=http://127.0.0.1:2", "--initial-advertise-peer-urls", "http://127.0.0.1:1",
			"--initial-cluster-token", "once")
		if status != 0 {
			t.Fatalf("%s: %d %s", word, status, errs)
		}
		var got snapshot.Restored
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err, out)
		}
		if got.Keys != 10 || got.Revision != int64(at.Revision)+1_000_000_000 || got.Compacted != got.Revision || got.Proof.Entry != 10 ||
			got.Proof.Sum != fmt.Sprintf("%016x", at.Sum) {
			t.Errorf("%s: got %+v, proof %+v", word, got, got.Proof)
		}
		clusters = append(clusters, got.ClusterID)
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(data), "*scratch*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
		if status, _, _ := quorate(t, "restore", from, "--at", word, "--data-dir", data, "--name", "m1"); status != command.StatusRefused {
			t.Errorf("again into it: %d", status)
		}
	}
	if clusters[0] != clusters[1] || clusters[0] != clusters[2] || clusters[0] == backuptest.Cluster.String() {
		t.Errorf("clusters %v", clusters)
	}
	status, out, _ := quorate(t, "restore", from, "--at", "entry:20", "--plan")
	if status != 0 || !strings.Contains(out, "left out  all that was written after entry 20") || !strings.Contains(out, "segments") {
		t.Errorf("plan: %d %s", status, out)
	}
}

// A refusal says the cause, with the object's name, and makes nothing.
func TestBackup_wrong(t *testing.T) {
	dir, heads := shipped(t, 12)
	from := "--from=file://" + dir
	data := filepath.Join(t.TempDir(), "m1")
	for _, row := range []struct {
		args   []string
		status int
		say    string
	}{
		{[]string{"restore", "--at=latest"}, command.StatusUsage, "--from URL"},
		{[]string{"restore", from}, command.StatusUsage, "say which state"},
		{[]string{"restore", from, "--at=yesterday"}, command.StatusUsage, "write \"latest\", a time"},
		{[]string{"restore", from, "--at=entry:99"}, command.StatusRefused, "ask for it with --at entry:12"},
		{[]string{"restore", from, "--at=latest", "--cluster=77"}, command.StatusRefused, "no base of cluster 77"},
		{[]string{"backup", "verify", "--from=file://" + t.TempDir()}, command.StatusRefused, "has no backup of a cluster"},
		{[]string{"backup", "list", from, "--cluster=x"}, command.StatusUsage, "in hexadecimal digits"},
	} {
		if status, _, errs := quorate(t, append(row.args, "--data-dir="+data)[:len(row.args)+btoi(row.args[0] == "restore")]...); status !=
			row.status || !strings.Contains(errs, row.say) {
			t.Errorf("%v: %d %s", row.args, status, errs)
		}
	}
	// The segment of the sixth entry has another byte: states before it are restored, later ones from the base in the middle, if it is of
	// a later entry.
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*", fmt.Sprintf("*-%016x-%016x-*", 5, 5)))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	content, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-1] ^= 1
	if err := os.Remove(segments[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segments[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, errs := quorate(t, "restore", from, "--at=entry:5", "--data-dir="+data)
	if status != command.StatusRefused || !strings.Contains(errs, filepath.Base(segments[0])) || !strings.Contains(errs, "--at entry:4") {
		t.Errorf("%d %s", status, errs)
	}
	if _, err := os.Stat(filepath.Join(data, "member")); !os.IsNotExist(err) {
		t.Errorf("a directory was made: %v", err)
	}
	if status, _, errs := quorate(t, "restore", from, "--at=entry:4", "--data-dir="+data); status != 0 {
		t.Errorf("the state that the refusal names: %d %s", status, errs)
	}
	if status, _, errs := quorate(t, "backup", "verify", from, fmt.Sprintf("--at=entry:%d", heads[11].Index)); status != 0 {
		t.Errorf("the latest state has another base: %d %s", status, errs)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A state is restored into a directory that is encrypted from the first byte: no value of it is on the disk in the clear.
func TestBackup_intoEncrypted(t *testing.T) {
	dir, _ := shipped(t, 12)
	key, data := filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "m1")
	if err := os.WriteFile(key, []byte("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	status, _, errs := quorate(t, "restore", "--from=file://"+dir, "--at=latest", "--data-dir="+data, "--encryption-key-file="+key)
	if status != 0 {
		t.Fatalf("%d %s", status, errs)
	}
	files := 0
	err := filepath.WalkDir(data, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("vvvvvvvv")) {
			t.Errorf("%s holds a value", path)
		}
		return err
	})
	if err != nil || files < 5 {
		t.Errorf("%d files, %v", files, err)
	}
}
