package backup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
	"github.com/quorate/quorate/internal/kv"
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
	said(t, run("restore", "--plan", "--at=entry:6"), "plan for entry 6, cluster") // no segment is an object
	said(t, run("restore", "--plan", "--at=latest", "--history=9:0000000000000099", "-o", "json"), `"newest":{"epoch":0,"entry":9,`)
	said(t, run("restore", "--plan", "--at=latest", "--history=12:000000000000000c", "-o", "json"), `"newest":{"epoch":0,"entry":12,`)
	run("restore", "--plan", "--at=latest", "--history=12:99").Want(t, command.StatusUsage, "", "write ENTRY:SUM")
	got := run("restore", "--plan", "--at=latest", "--history=11:0000000000000077")
	if got.Status == command.StatusOK || !strings.Contains(got.Err, "no object of cluster abcdef ends with the state") {
		t.Errorf("got %+v", got)
	}
}

// Ensure that a plan says of a state that segments at the place do not agree about it: a restore replays them.
func TestRestore_plan_rivals(t *testing.T) {
	dir, store := shipped(t, 6)
	packer, now := backup.NewPacker(), time.Now().UnixMilli()
	put := func(name string, content string) {
		if err := objects.PutOnce(t.Context(), store, name, strings.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	log := func(sums ...uint64) backup.SegmentName {
		s := &backup.Segment{Cluster: cluster, Before: 6, RevisionBefore: 6}
		for i, sum := range sums {
			e := consensus.Entry{Index: consensus.Index(7 + i), Term: 1, Kind: consensus.EntryCommand, Payload: []byte{1}}
			s.Items = append(s.Items, backup.Item{Entry: e, Time: now, Revision: kv.Revision(7 + i), Sum: sum})
		}
		name, content := packer.Pack(s)
		put(name.String(), string(content))
		return name
	}
	log(7, 8, 9, 10)
	plan := func() ctltest.Result {
		return ctltest.Run(t, t.Context(), command.Streams{}, "", "restore", "--plan", "--at=entry:8", "--from=file://"+dir)
	}
	if got := plan(); got.Status != command.StatusOK || strings.Contains(got.Out, "not sure") {
		t.Errorf("got %+v", got)
	}
	back := log(7, 0x88)
	back.First, back.Before, back.End = 9, 0x88, backup.Point{Index: 10, Sum: 10}
	back.Revision, back.Hash = 10, backup.HashOf([]byte("x"))
	put(back.String(), "x")
	said(t, plan(), "not sure  1 segment at the place has another state there. A restore finds out")
}
