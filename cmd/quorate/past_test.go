package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/undelete/undeletetest"
)

// Keys that the history of a cluster has forgotten come back from a backup: a plan first, then their values; and what differs
// between two states is shown. Nothing is left in the scratch directory.
func TestBackup_undelete(t *testing.T) {
	dir, heads := shipped(t, 12)
	m := undeletetest.Start(t)
	m.Cluster = uint64(backuptest.Cluster)
	m.Set("k3", strings.Repeat("v", 100), 0)
	m.Set("k4", "new", 0)
	m.Forget(3)
	scratch := t.TempDir()
	args := []string{"undelete", "k", "--endpoints", m.Address, "--from-backup", "file://" + dir, "--at", "entry:6", "--scratch", scratch}
	status, out, errs := quorate(t, append(args, "--dry-run")...)
	if status != 0 || !strings.Contains(out, fmt.Sprintf("as of revision %d of the backup", heads[5].Revision)) ||
		!strings.Contains(out, "4 keys, ") || !strings.Contains(out, "1 with the value that would be restored, 1 with another") {
		t.Errorf("plan: %d %s %s", status, out, errs)
	}
	if _, _, exists := m.Value("k0"); exists {
		t.Error("--dry-run wrote a key")
	}
	status, out, errs = quorate(t, append(args, "--yes", "--limit", "3")...)
	if status != 0 || !strings.Contains(out, "restored 3 keys") || !strings.Contains(out, "--from-backup file://"+dir+" --at entry:6") {
		t.Errorf("first keys: %d %s %s", status, out, errs)
	}
	if status, out, errs = quorate(t, append(args, "--yes")...); status != 0 || !strings.Contains(out, "restored 1 key") {
		t.Errorf("the rest: %d %s %s", status, out, errs)
	}
	for key, want := range map[string]string{"k0": strings.Repeat("v", 100), "k5": strings.Repeat("v", 100), "k4": "new", "k6": ""} {
		if value, _, _ := m.Value(key); value != want {
			t.Errorf("%s: %q", key, value)
		}
	}
	for _, row := range []struct {
		more   []string
		status int
		say    string
	}{
		{[]string{"undelete", "k", "--from-backup", "file://" + dir, "--yes"}, command.StatusUsage, "say which state with --at"},
		{[]string{"undelete", "k", "--from-backup", "file://" + dir, "--at", "yesterday", "--yes"}, command.StatusUsage, "write \"latest\""},
		{[]string{"undelete", "k", "--from-backup", "file://" + dir, "--at", "entry:99", "--yes"}, command.StatusRefused, "--at entry:12"},
		{[]string{"undelete", "zz", "--from-backup", "file://" + dir, "--at", "latest", "--yes"}, command.StatusRefused,
			"no key that begins with zz existed in the backup's state of revision"},
	} {
		status, _, errs := quorate(t, append(row.more, "--endpoints", m.Address, "--scratch", scratch)...)
		if status != row.status || !strings.Contains(errs, row.say) {
			t.Errorf("%v: %d %s", row.more, status, errs)
		}
	}
	for at, want := range map[string]string{"1": "revision 1 is compacted: ", "9999": "revision 9999 is in the future"} {
		status, _, errs = quorate(t, "snapshot", "diff", "--at", at, "--at", at, "--endpoints", m.Address)
		if status != command.StatusRefused || !strings.Contains(errs, want) {
			t.Errorf("diff with a state that is not there: %d %s", status, errs)
		}
	}
	m.Cluster++ // as a cluster that was restored from the backup
	status, _, errs = quorate(t, append(args, "--yes")...)
	if status != command.StatusRefused || !strings.Contains(errs, "nothing of this cluster (abcdf0) yet; of another one, [abcdef]") {
		t.Errorf("another cluster: %d %s", status, errs)
	}
	if status, _, errs = quorate(t, append(args, "--yes", "--cluster", "abcdef")...); status != 0 {
		t.Errorf("another cluster that is named: %d %s", status, errs)
	}
	diff := []string{"snapshot", "diff", "--from", "file://" + dir, "--scratch", scratch, "--at", "entry:4", "--at", "latest", "--endpoints", m.Address}
	if status, _, errs = quorate(t, diff...); status != command.StatusRefused || !strings.Contains(errs, "nothing of this cluster") {
		t.Errorf("diff of another cluster: %d %s", status, errs)
	}
	if status, _, errs = quorate(t, append(diff, "--cluster", "abcdef")...); status != 0 {
		t.Errorf("diff of another cluster that is named: %d %s", status, errs)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("left in the scratch directory: %v %v", left, err)
	}
}

// The keys that differ between two states are shown for people and for programs, and states that are not there are refused.
func TestBackup_diff(t *testing.T) {
	dir, _ := shipped(t, 12)
	from := []string{"snapshot", "diff", "--from", "file://" + dir, "--scratch", t.TempDir()}
	status, out, errs := quorate(t, append(from, "--at", "entry:4", "--at", "latest", "k")...)
	if status != 0 || !strings.Contains(out, "+ k4  (100 B, revision ") || !strings.Contains(out, "\n8 added, 0 changed, 0 removed") ||
		strings.Contains(out, "k3 ") {
		t.Errorf("%d %s %s", status, out, errs)
	}
	status, out, errs = quorate(t, append(from, "--at", "latest", "--at", "entry:4", "--keys", "1", "--values", "k1")...)
	if status != 0 || !strings.Contains(out, "- k10  (") || !strings.Contains(out, "    was vvv") || !strings.Contains(out, "and 1 other key") ||
		!strings.Contains(out, "0 added, 0 changed, 2 removed") {
		t.Errorf("%d %s %s", status, out, errs)
	}
	if status, out, errs = quorate(t, append(from, "--at", "entry:4", "--at", "entry:5", "-o", "json")...); status != 0 ||
		strings.Count(out, "\n") != 1 || !strings.Contains(out, `{"change":"added","key":"azQ="`) {
		t.Errorf("%d %s %s", status, out, errs)
	}
	for _, row := range []struct {
		args   []string
		status int
		say    string
	}{
		{append(from, "--at", "entry:4"), command.StatusUsage, "give two states"},
		{append(from, "--at", "entry:4", "--at", "entry:99"), command.StatusRefused, "--at entry:12"},
		{[]string{"snapshot", "diff", "--at", "latest", "--at", "4"}, command.StatusUsage, "write a revision"},
		{[]string{"snapshot", "diff", "--from", "file://" + filepath.Join(dir, "none"), "--at", "3", "--at", "4"}, command.StatusRefused, "none"},
	} {
		if status, _, errs := quorate(t, row.args...); status != row.status || !strings.Contains(errs, row.say) {
			t.Errorf("%v: %d %s", row.args, status, errs)
		}
	}
}
