package monitoring

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// backup runs a command of the continuous backup, and wants an exit status.
func (c *cluster) backup(ctx context.Context, t *testing.T, status int, words ...string) {
	t.Helper()
	words = append(append([]string{"backup"}, words...), "--endpoints=http://"+c.members[0].client)
	out, err := exec.CommandContext(ctx, c.binary, words...).CombinedOutput()
	exit := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &exit) || err == nil && status != 0 || err != nil && exit.ExitCode() != status {
		t.Fatalf("quorate %s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// shows waits until the first member shows a line.
func (c *cluster) shows(ctx context.Context, t *testing.T, line string) {
	t.Helper()
	for {
		if page, _ := c.members[0].page(t); strings.Contains(string(page), line+"\n") {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("no line %q", line)
		}
	}
}

// starts starts the backup, and waits until it has so many bases.
func (c *cluster) starts(ctx context.Context, t *testing.T, bases int) {
	t.Helper()
	c.backup(ctx, t, 0, "start", "file://"+c.place, "--verify-every=0")
	c.shows(ctx, t, "quorate_backup_on 1")
	for ctx.Err() == nil {
		if found, _ := filepath.Glob(filepath.Join(c.place, "base", "*", "*.json")); len(found) >= bases {
			return
		}
	}
	t.Fatal("no base is made")
}

// backups tries the alerts on a continuous backup: one that has a gap, then one that cannot be restored, then one that is off.
func (s *scraper) backups(ctx context.Context, t *testing.T, alerts []rule) {
	t.Helper()
	c := s.cluster
	c.backup(ctx, t, 0, "stop")
	if _, err := c.client.Put(ctx, "between", "v"); err != nil {
		t.Fatal(err)
	}
	c.starts(ctx, t, 2)
	c.shows(ctx, t, "quorate_backup_gaps_total 1")
	c.shows(ctx, t, `quorate_doctor_findings{code="BACKUP_GAP",severity="3"} 1`)
	s.minutes(t, 6, func() {})
	s.demand(t, alerts, "the backup has a gap", "QuorateBackup", "QuorateBackupGap")

	if err := os.RemoveAll(filepath.Join(c.place, "base")); err != nil {
		t.Fatal(err)
	}
	c.backup(ctx, t, 1, "verify", "--from=file://"+c.place, "--report", "--scratch="+t.TempDir())
	c.shows(ctx, t, "quorate_backup_verified_failed 1")
	s.minutes(t, 2, func() {})
	s.demand(t, alerts, "the backup cannot be restored", "QuorateBackupFails")
	c.backup(ctx, t, 0, "stop")
	c.shows(ctx, t, "quorate_backup_on 0")
	s.minutes(t, 1, func() {})
	if got := s.firing(t, alerts); strings.Contains(strings.Join(got, " "), "QuorateBackupFails") {
		t.Errorf("the backup is off, and true are %v", got)
	}
}
