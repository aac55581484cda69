package backup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/backup/prune"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/directory"
)

const cluster = 0xabcdef

// shipped is a place in a directory to which a member shipped until now: a segment an hour, a base each 6 hours.
func shipped(t *testing.T, hours int) (string, objects.Store) {
	t.Helper()
	dir, n := t.TempDir(), 0
	store, err := directory.Open(files.Disk, dir, directory.Options{Now: time.Now,
		Unique: func() string { n++; return fmt.Sprint(n) }})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now().Add(-time.Duration(hours) * time.Hour).UnixMilli()
	put := func(name string, content []byte, at int64) {
		if err := objects.PutOnce(t.Context(), store, name, strings.NewReader(string(content)), int64(len(content))); err != nil {
			t.Fatal(err)
		}
		putAt(t, dir, name, at)
	}
	file := []byte("a table")
	put(backup.FileName(cluster, backup.HashOf(file)), file, begun)
	for i := 1; i <= hours; i++ {
		at := begun + int64(i)*3600_000
		s := backup.SegmentName{Cluster: cluster, First: consensus.Index(i), Before: uint64(i - 1),
			End: backup.Point{Index: consensus.Index(i), Sum: uint64(i)}, Moment: backup.Moment{Revision: kv.Revision(i), Time: at},
			Hash: backup.HashOf([]byte{byte(i)})}
		put(s.String(), []byte{byte(i)}, at)
		if i%6 == 0 {
			m := backup.Manifest{Cluster: cluster, Index: s.End.Index, Sum: backup.Hex(s.End.Sum), Revision: s.Revision, Time: at,
				Level: 1, Files: []backup.File{{Name: "1", Size: int64(len(file)), Hash: backup.HashOf(file)}}}
			name, content := m.Encode()
			put(name.String(), content, at)
		}
	}
	return dir, store
}

// putAt sets when the place took an object.
func putAt(t *testing.T, dir, name string, at int64) {
	t.Helper()
	if err := os.Chtimes(filepath.Join(dir, name), time.UnixMilli(at), time.UnixMilli(at)); err != nil {
		t.Fatal(err)
	}
}

// removes lets a round of retention remove what a rule does not keep, where these bases are known to be of members.
func removes(ctx context.Context, t *testing.T, store objects.Store, rule string, known ...kv.BackupBase) prune.Report {
	t.Helper()
	r, err := keep.Parse(rule)
	if err != nil {
		t.Fatal(err)
	}
	p := prune.New(prune.Config{Cluster: cluster, Member: 3, Rule: r})
	newest := consensus.Index(0)
	for i := range known {
		newest = consensus.Index(known[i].Index)
	}
	p.Begin(time.Now().UnixMilli(), newest, known...)
	for ops := p.Take(); len(ops) > 0; ops = p.Take() {
		for i := range ops {
			p.Done(ops[i].ID, fetch.Prune(ctx, store, &ops[i]))
		}
	}
	return p.Report()
}

// Ensure that a preview says what each base stays for, and how much goes, and changes nothing; that it takes the last rule; that
// a list says what was removed; and that a restore of a state that was removed says so.
func TestRetention(t *testing.T) {
	dir, store := shipped(t, 10*24)
	run := func(args ...string) ctltest.Result {
		return ctltest.Run(t, t.Context(), command.Streams{}, "", append(args, "--from=file://"+dir)...)
	}
	names := func() (names []string) {
		for more, after := true, ""; more; {
			var found []objects.Info
			var err error
			if found, more, err = store.List(t.Context(), "", after, objects.MaxList); err != nil {
				t.Fatal(err)
			}
			for i := range found {
				names = append(names, found[i].Name)
				after = found[i].Name
			}
		}
		return names
	}
	before := names()
	run("backup", "retention").Want(t, command.StatusUsage, "", "nothing was removed by a rule here yet")
	run("backup", "retention", "--keep=10x").Want(t, command.StatusUsage, "", "no time of whole hours")
	got := run("backup", "retention", "--keep=48h,daily:5")
	for _, want := range []string{"rule 2d,daily:5: any moment of the last 2 days", "goes now", "the last 2 days need it",
		"stays: the newest base, the last of ", "the log stays from entry", "until about ", "goes next time"} {
		if got.Status != command.StatusOK || !strings.Contains(got.Out, want) {
			t.Errorf("no %q: %+v", want, got)
		}
	}
	said(t, run("backup", "retention", "--keep=48h,daily:5", "-o", "json"), `"objects_to_remove":`)
	if !slices.Equal(before, names()) {
		t.Error("a preview changes the place")
	}
	for range 4 {
		if r := removes(t.Context(), t, store, "48h,daily:5"); !r.Done || r.Why != "" {
			t.Fatalf("%+v", r)
		}
	}
	said(t, run("backup", "retention"), "would remove 0 objects now")
	said(t, run("backup", "list"), "removed  the log to entry ")
	said(t, run("backup", "list", "-o", "json"), `"log_until_entry":`)
	run("restore", "--at=entry:9", "--plan").Want(t, command.StatusRefused, "", "retention removed the log up to entry")
	manifest, err := filepath.Glob(filepath.Join(dir, "base/*/*"))
	if err != nil || len(manifest) == 0 {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest[0], []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	got = run("backup", "retention")
	if got.Status != command.StatusRefused || !strings.Contains(got.Out, "unreadable") || !strings.Contains(got.Err, "cannot be read") {
		t.Errorf("with a damaged manifest: %+v", got)
	}
}

// Ensure that a preview with the word of the cluster shows what the member that ships removes then, by the rule of the cluster,
// where somebody put bases beside those of members; and that without it, or with that of another cluster, it says so.
func TestRetention_known(t *testing.T) {
	dir, store := shipped(t, 10*24)
	catalog, err := fetch.Catalog(t.Context(), store, cluster)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeBackup{cluster: cluster, status: &quoratepb.BackupStatus{Generation: 1, On: true, Keep: "48h,daily:5"}}
	var known []kv.BackupBase
	for _, b := range catalog.Bases {
		known = append(known, kv.BackupBase{Index: uint64(b.Index), Hash: b.Hash})
		f.status.Made = append(f.status.Made, &quoratepb.BackupMade{Index: uint64(b.Index), Sha256: b.Hash[:]})
		if b.Index%24 != 18 {
			continue
		}
		file := []byte("a table") // of a base that takes the place of the day's last one
		forged := backup.Manifest{Cluster: cluster, Index: b.Index + 5, Sum: 1, Revision: b.Revision + 5, Time: b.Time + 5*3600_000,
			Level: 1, Files: []backup.File{{Name: "1", Size: int64(len(file)), Hash: backup.HashOf(file)}}}
		if forged.Index >= catalog.Bases[len(catalog.Bases)-1].Index {
			continue
		}
		name, content := forged.Encode()
		if err := objects.PutOnce(t.Context(), store, name.String(), bytes.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
		putAt(t, dir, name.String(), forged.Time)
	}
	run := f.serve(t)
	var preview struct {
		Rule  string `json:"rule"`
		Bases []struct {
			Entry consensus.Index `json:"entry"`
			Kept  bool            `json:"kept"`
			State string          `json:"state"`
		} `json:"bases"`
		Objects int `json:"objects_to_remove"`
	}
	got := run("retention", "--from=file://"+dir, "-o", "json")
	if err := json.Unmarshal([]byte(got.Out), &preview); err != nil || got.Status != command.StatusOK || preview.Rule != "2d,daily:5" {
		t.Fatalf("%v: %+v", err, got)
	}
	alone := ctltest.Run(t, t.Context(), command.Streams{}, "", "backup", "retention", "--from=file://"+dir, "--keep=48h,daily:5", "-o", "json")
	if alone.Status != command.StatusOK || !strings.Contains(alone.Err, "without --endpoints of the cluster") || alone.Out == got.Out {
		t.Errorf("without the cluster: %+v", alone)
	}
	r := removes(t.Context(), t, store, "48h,daily:5", known...)
	if !r.Done || r.Removed != preview.Objects || len(r.Plan.Fates) != len(preview.Bases) || r.Removed == 0 {
		t.Fatalf("the job removes %d objects of %d bases: %+v", r.Removed, len(r.Plan.Fates), preview)
	}
	strange := 0
	for i := range r.Plan.Fates {
		fate := &r.Plan.Fates[i]
		if shown := preview.Bases[i]; shown.Entry != fate.Index || shown.Kept != fate.Kept {
			t.Errorf("shown is %+v, and the job's is %+v", shown, fate)
		} else if shown.State == "made by no member" {
			strange++
		}
	}
	if strange == 0 {
		t.Error("no base is said to be made by no member")
	}
	f.cluster = 0x77
	run("retention", "--from=file://"+dir, "--cluster=abcdef").Want(t, command.StatusUsage, "", "is 77, and the backup is that of abcdef")
	f.cluster, f.status.Made[0].Sha256 = cluster, []byte{1}
	run("retention", "--from=file://"+dir).Want(t, command.StatusRefused, "", "a sum of 1 bytes")
}
