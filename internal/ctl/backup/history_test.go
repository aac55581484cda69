package backup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Ensure that of a place with two histories the list names both, that a plan is refused with both names unless one is given, and
// that a name of neither is refused.
func TestHistories(t *testing.T) {
	dir, store := shipped(t, 12)
	other := backup.SegmentName{Cluster: cluster, First: 9, Before: 8, End: backup.Point{Index: 9, Sum: 0x99},
		Moment: backup.Moment{Revision: 9, Time: time.Now().UnixMilli()}, Hash: backup.HashOf([]byte("o"))}
	if err := objects.PutOnce(t.Context(), store, other.String(), strings.NewReader("o"), 1); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) ctltest.Result {
		return ctltest.Run(t, t.Context(), command.Streams{}, "", append(args, "--from=file://"+dir)...)
	}
	const longer, shorter = "--history 12:000000000000000c", "--history 9:0000000000000099"
	if got := run("backup", "list"); !strings.Contains(got.Out, "several histories: ") || !strings.Contains(got.Out, longer) ||
		!strings.Contains(got.Out, shorter) {
		t.Errorf("got %+v", got)
	}
	said(t, run("backup", "list", "-o", "json"), `"name":"9:0000000000000099"`)
	for _, at := range []string{"latest", "entry:9", "entry:12"} {
		got := run("restore", "--plan", "--at="+at)
		if got.Status == command.StatusOK || !strings.Contains(got.Err, "two histories") || !strings.Contains(got.Err, longer) ||
			!strings.Contains(got.Err, shorter) {
			t.Errorf("%s: %+v", at, got)
		}
	}
	said(t, run("restore", "--plan", "--at=entry:8"), "plan for entry 8, cluster")
	said(t, run("restore", "--plan", "--at=latest", "--history=9:0000000000000099", "-o", "json"), `"newest":{"epoch":0,"entry":9,`)
	said(t, run("restore", "--plan", "--at=latest", "--history=12:000000000000000c", "-o", "json"), `"newest":{"epoch":0,"entry":12,`)
	run("restore", "--plan", "--at=latest", "--history=12:99").Want(t, command.StatusUsage, "", "write ENTRY:SUM")
	got := run("restore", "--plan", "--at=latest", "--history=11:0000000000000077")
	if got.Status == command.StatusOK || !strings.Contains(got.Err, "no object of cluster abcdef ends with the state") {
		t.Errorf("got %+v", got)
	}
}
