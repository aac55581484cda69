package apply_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/kv"
)

// Ensure that the row knows the last bases that members reported, each once and the newest report last, that reports without a
// base take none away, that the list outlives a restart, and that another place begins with none.
func TestMachine_Apply_backupKnown(t *testing.T) {
	b := newBackupBench(t)
	b.do(backupPolicy(0, "file:///b", true))
	b.do(backupTurn(1, 2))
	report := func(turn uint64, n int) {
		p := kv.BackupProgress{At: 1}
		if n > 0 {
			p.Base, p.BaseHash = kv.BackupPoint{Index: uint64(n)}, [32]byte{byte(n)}
		}
		if res := b.do(backupReport(turn, 2, p)); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	var want []kv.BackupBase
	for n := 1; n <= kv.MaxBackupKnown+6; n++ {
		report(2, n)
		report(2, n)
		report(2, 0)
		want = append(want, kv.BackupBase{Index: uint64(n), Hash: [32]byte{byte(n)}})
	}
	want = want[len(want)-kv.MaxBackupKnown:]
	b.do(backupTurn(2, 2))
	report(3, 20) // continues an older one
	got := b.m.Backup()
	if diff := cmp.Diff(want, got.Known); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	if got.Progress.BaseHash != want[len(want)-1].Hash || !got.Knows(want[0].Hash) || got.Knows([32]byte{6}) || got.Knows([32]byte{}) {
		t.Errorf("got %+v", got)
	}
	b.flush()
	b.open()
	if diff := cmp.Diff(*got, *b.m.Backup()); diff != "" {
		t.Errorf("after a restart: want -, got +\n%s", diff)
	}
	if res := b.do(backupReport(3, 2, kv.BackupProgress{At: 1, BaseHash: [32]byte{1}})); !errors.Is(res.Err, kv.ErrBadCommand) {
		t.Errorf("a hash without a base: %v", res.Err)
	}
	b.do(backupPolicy(1, "file:///b", false))
	if got := b.m.Backup(); len(got.Known) != kv.MaxBackupKnown {
		t.Errorf("stopped: %+v", got)
	}
	b.do(backupPolicy(2, "file:///c", true))
	if got := b.m.Backup(); got.Known != nil {
		t.Errorf("another place: %+v", got)
	}
}

// Ensure that a row with more bases than there may be is damaged, not read in part.
func TestDecodeBackupRow_known(t *testing.T) {
	row := kv.BackupRow{Generation: 1, Known: make([]kv.BackupBase, kv.MaxBackupKnown)}
	if got, ok := kv.DecodeBackupRow(row.Append(nil)); !ok || len(got.Known) != kv.MaxBackupKnown {
		t.Error(ok, got)
	}
	row.Known = append(row.Known, kv.BackupBase{})
	if _, ok := kv.DecodeBackupRow(row.Append(nil)); ok {
		t.Error("one more is read")
	}
}
