package backup_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
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
// entry the other members are restored to, with a token that no other restore has.
func TestRestore_words(t *testing.T) {
	dir, _ := shipped(t, 6)
	var out, errs bytes.Buffer
	var tokens []string
	tools := ctl.Tools{Restore: func(_ context.Context, r *snapshot.Request) (*snapshot.Restored, error) {
		tokens = append(tokens, r.Member[len(r.Member)-1])
		return &snapshot.Restored{DataDir: "d", Member: "m1", Members: 3, Proof: &snapshot.Proof{Entry: 6}}, nil
	}}
	args := []string{"restore", "--from=file://" + dir, "--at=latest", "--data-dir=d"}
	if status := ctl.RunWith(t.Context(), args, command.Streams{Out: &out, Err: &errs}, tools); status != command.StatusOK ||
		!strings.Contains(out.String(), "`quorate backup start URL --recipient … --keep …`") ||
		!strings.Contains(out.String(), "with --at entry:6 "+strings.Replace(tokens[0], "=", " ", 1)+", then start all") {
		t.Errorf("%d: %s%s", status, out.String(), errs.String())
	}
	out.Reset()
	for _, more := range [][]string{nil, {"--initial-cluster-token=mine"}} {
		if status := ctl.RunWith(t.Context(), append(args, more...), command.Streams{Out: &out, Err: &errs}, tools); status != command.StatusOK {
			t.Errorf("%d: %s", status, errs.String())
		}
	}
	if tokens[0] == tokens[1] || tokens[2] != "--initial-cluster-token=mine" || strings.Contains(out.String(), "token mine") {
		t.Errorf("tokens %v: %s", tokens, out.String())
	}
}

// Ensure that a verification that is reported is of the backup of the cluster that is told, where a place has several, and that
// another one is refused before it takes its time.
func TestVerify_reportOfSeveral(t *testing.T) {
	dir, store := shipped(t, 6)
	for _, former := range []consensus.ClusterID{0x77, 0xffffff} {
		s := backup.SegmentName{Cluster: former, First: 1, End: backup.Point{Index: 9, Sum: 9},
			Moment: backup.Moment{Revision: 8, Time: 1000}, Hash: backup.HashOf([]byte("s"))}
		if err := objects.PutOnce(t.Context(), store, s.String(), strings.NewReader("s"), 1); err != nil {
			t.Fatal(err)
		}
	}
	var verified []consensus.ClusterID
	tools := ctl.Tools{Verify: func(_ context.Context, b *snapshot.Backup, _ func(int64, int64)) (*snapshot.Proof, error) {
		verified = append(verified, b.Catalog.Cluster)
		return &snapshot.Proof{Entry: 6, Sum: "6", Time: "2026-11-30T12:00:00Z"}, nil
	}}
	f := &fakeBackup{cluster: cluster, status: &quoratepb.BackupStatus{}}
	address := f.listen(t)
	for _, row := range []struct {
		args           []string
		status         int
		says           string
		tried, reports int
	}{
		{[]string{"--report", "--endpoints=" + address}, command.StatusOK, "the cluster knows", 1, 1},
		{[]string{"--report", "--endpoints=" + address, "--cluster=0ABCDEF"}, command.StatusOK, "the cluster knows", 2, 2},
		{[]string{"--report", "--endpoints=" + address, "--cluster=77"}, command.StatusUsage, "that is cluster abcdef", 2, 2},
		{[]string{"--cluster=77"}, command.StatusOK, "", 3, 2},
		{nil, command.StatusUsage, "choose one with --cluster", 3, 2},
		{[]string{"--report", "--endpoints=127.0.0.1:1", "--timeout=100ms"}, command.StatusUsage, "may not take the report", 3, 2},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"backup", "verify", "--from=file://" + dir}, row.args...)
		status := ctl.RunWith(t.Context(), args, command.Streams{Out: &out, Err: &errs}, tools)
		if status != row.status || !strings.Contains(errs.String(), row.says) || len(verified) != row.tried ||
			len(f.reported) != row.reports {
			t.Errorf("%v: status %d, %d tries, %d reports: %s%s", row.args, status, len(verified), len(f.reported), out.String(),
				errs.String())
		}
	}
	if len(verified) < 2 || verified[0] != cluster || verified[1] != cluster || f.reported[0].GetCluster() != cluster {
		t.Errorf("verified %v, reported %v", verified, f.reported)
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
