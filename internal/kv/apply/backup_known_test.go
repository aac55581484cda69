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
	row = kv.BackupRow{Generation: 1, KnownGaps: make([]kv.BackupGap, kv.MaxBackupKnown)}
	if got, ok := kv.DecodeBackupRow(row.Append(nil)); !ok || len(got.KnownGaps) != kv.MaxBackupKnown {
		t.Error(ok, got)
	}
	row.KnownGaps = append(row.KnownGaps, kv.BackupGap{})
	if _, ok := kv.DecodeBackupRow(row.Append(nil)); ok {
		t.Error("one more gap is read")
	}
}

// Ensure that the row knows the last gaps that members reported, each once, that other reports take none away, that the list
// outlives a restart, and that another place begins with none.
func TestMachine_Apply_backupKnownGaps(t *testing.T) {
	b := newBackupBench(t)
	b.do(backupPolicy(0, "file:///b", true))
	b.do(backupTurn(1, 2))
	gap := func(n int) kv.BackupGap {
		return kv.BackupGap{After: uint64(10 * n), Until: uint64(10*n + 5), Time: int64(n)}
	}
	var want []kv.BackupGap
	for n := 1; n <= kv.MaxBackupKnown+3; n++ {
		for _, said := range []kv.BackupGap{gap(n), {}, gap(n)} {
			if res := b.do(backupReport(2, 2, kv.BackupProgress{At: 1, Gaps: uint64(n), Gap: said})); res.Err != nil {
				t.Fatal(res.Err)
			}
		}
		want = append(want, gap(n))
	}
	b.do(backupTurn(2, 3))
	b.do(backupReport(3, 3, kv.BackupProgress{At: 2}))
	b.flush()
	b.open()
	got := b.m.Backup()
	if diff := cmp.Diff(want[3:], got.KnownGaps); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	for index, lacks := range map[uint64]bool{40: false, 41: true, 44: true, 45: false, 31: false} {
		if got.Lacks(index) != lacks {
			t.Errorf("entry %d: lacks %v", index, !lacks)
		}
	}
	if b.do(backupPolicy(1, "file:///c", true)); b.m.Backup().KnownGaps != nil {
		t.Errorf("another place: %+v", b.m.Backup())
	}
}
