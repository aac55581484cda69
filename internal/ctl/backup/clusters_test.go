package backup_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
	"github.com/quorate/quorate/internal/ctl/snapshot"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Ensure that list shows each cluster of a place with several, the one that wrote last first, with its last state; that other
// commands refuse, and say until when each goes; and that --cluster chooses one.
func TestClusters(t *testing.T) {
	dir, store := shipped(t, 12)
	put := func(name, content string) {
		t.Helper()
		if err := objects.PutOnce(t.Context(), store, name, strings.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	former := backup.SegmentName{Cluster: 0x77, First: 1, End: backup.Point{Index: 9, Sum: 9},
		Moment: backup.Moment{Revision: 8, Time: 1000}, Hash: backup.HashOf([]byte("s"))}
	put(former.String(), "s")
	put("log/0000000000000088/odd", "x")
	run := func(args ...string) ctltest.Result {
		return ctltest.Run(t, t.Context(), command.Streams{}, "", append(args, "--from=file://"+dir)...)
	}
	got := run("backup", "list")
	if lines := strings.Split(got.Out, "\n"); got.Status != command.StatusOK || len(lines) < 4 ||
		!strings.HasPrefix(lines[0], "cluster abcdef  to entry 12  revision 12  ") ||
		!strings.HasPrefix(lines[1], "cluster 77      to entry 9   revision 8   1970-01-01T00:00:01.000Z") ||
		!strings.HasPrefix(lines[2], "cluster 88      nothing to restore") {
		t.Errorf("got %+v", got)
	}
	said(t, run("backup", "list", "-o", "json"), `{"clusters":[{"cluster":"abcdef","newest":{"epoch":0,"entry":12,`)
	for _, args := range [][]string{{"backup", "retention", "--keep=14d"}, {"restore", "--at=latest", "--plan"}} {
		run(args...).Want(t, command.StatusUsage, "", "choose one with --cluster: abcdef (to 20")
		run(args...).Want(t, command.StatusUsage, "", "), 77 (to 1970-01-01T00:00:01.000Z), 88 (nothing to restore)")
	}
	said(t, run("backup", "list", "--cluster=abcdef"), "cluster abcdef\nbase")
}

// Ensure that a restore says which command starts the backup of the new cluster, with the flags that are not kept, and which
// entry the other members are restored to.
func TestRestore_words(t *testing.T) {
	dir, _ := shipped(t, 6)
	var out, errs bytes.Buffer
	tools := ctl.Tools{Restore: func(context.Context, *snapshot.Request) (*snapshot.Restored, error) {
		return &snapshot.Restored{DataDir: "d", Member: "m1", Members: 3, Proof: &snapshot.Proof{Entry: 6}}, nil
	}}
	args := []string{"restore", "--from=file://" + dir, "--at=latest", "--data-dir=d"}
	if status := ctl.RunWith(t.Context(), args, command.Streams{Out: &out, Err: &errs}, tools); status != command.StatusOK ||
		!strings.Contains(out.String(), "`quorate backup start URL --recipient … --keep …`") ||
		!strings.Contains(out.String(), "with --at entry:6, then start all") {
		t.Errorf("%d: %s%s", status, out.String(), errs.String())
	}
}

// Ensure that --skip-existing leaves a member alone that is there, restores where none is or a restore was interrupted, and needs to
// know where.
func TestRestore_skipExisting(t *testing.T) {
	place, _ := shipped(t, 6)
	for _, row := range []struct {
		name   string
		holds  string
		flags  []string
		status int
		runs   bool
	}{
		{"a member", "member", []string{"--skip-existing"}, command.StatusOK, false},
		{"the rest of an interrupted restore", "member.partial", []string{"--skip-existing"}, command.StatusOK, true},
		{"nothing", "", []string{"--skip-existing"}, command.StatusOK, true},
		{"a member, without the flag", "member", nil, command.StatusOK, true}, // and the restore refuses it
	} {
		dir, ran := t.TempDir(), false
		if row.holds != "" {
			if err := os.Mkdir(filepath.Join(dir, row.holds), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		tools := ctl.Tools{Restore: func(context.Context, *snapshot.Request) (*snapshot.Restored, error) {
			ran = true
			return &snapshot.Restored{DataDir: dir, Member: "m1", Members: 1, Proof: &snapshot.Proof{Entry: 6}}, nil
		}}
		var out, errs bytes.Buffer
		args := append([]string{"restore", "--from=file://" + place, "--at=latest", "--data-dir=" + dir}, row.flags...)
		if status := ctl.RunWith(t.Context(), args, command.Streams{Out: &out, Err: &errs}, tools); status != row.status || ran != row.runs {
			t.Errorf("%s: status %d, restored %v: %s", row.name, status, ran, errs.String())
		}
	}
	var out, errs bytes.Buffer
	args := []string{"restore", "--from=file://" + place, "--at=latest", "--skip-existing"}
	none := ctl.Tools{Restore: func(context.Context, *snapshot.Request) (*snapshot.Restored, error) { return nil, nil }}
	if status := ctl.RunWith(t.Context(), args, command.Streams{Out: &out, Err: &errs}, none); status != command.StatusUsage ||
		!strings.Contains(errs.String(), "needs --data-dir") {
		t.Errorf("without a directory: %d, %s", status, errs.String())
	}
}
