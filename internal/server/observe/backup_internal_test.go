package observe

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that an observation says of a backup what the doctor judges it by.
func TestOptions_backup(t *testing.T) {
	o := &Options{RefusesPlace: func(string) string { return "no" }}
	if got := o.backup(&kv.BackupRow{}, 5000); got != nil {
		t.Errorf("none: %v", got)
	}
	row := &kv.BackupRow{Generation: 2, Member: 3, Policy: kv.BackupPolicy{On: true, Since: 1000, SealMillis: 600_000,
		BaseSeconds: 7200, VerifySeconds: 86400, Recipients: "age1a age1b"},
		Progress: kv.BackupProgress{At: 4000, Restorable: kv.BackupPoint{Revision: 7, Time: 3000}}}
	want := &quoratepb.ObservedBackup{On: true, Member: 3, SinceMs: 4000, ReportedMs: 1000, RestorableMs: 2000,
		RestorableRevision: 7, Refused: "no", SealMs: 600_000, BaseSeconds: 7200, VerifySeconds: 86400, Recipients: 2}
	if got := o.backup(row, 5000); !proto.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// Ensure that a state of the place from a time to come has no age: it would hide that nothing is shipped any more. Clocks may
// differ a little.
func TestOptions_backupAhead(t *testing.T) {
	const now = 1_790_000_000_000
	for _, c := range []struct{ at, age int64 }{{0, 0}, {now - 5000, 5000}, {now + 1000, 1}, {now + backupAhead + 1, 0}, {1 << 61, 0}} {
		row := kv.BackupRow{Generation: 1, Progress: kv.BackupProgress{Restorable: kv.BackupPoint{Index: 1, Time: c.at},
			Base: kv.BackupPoint{Index: 1, Time: c.at}}}
		o := Options{RefusesPlace: func(string) string { return "" }}
		if got := o.backup(&row, now); got.GetRestorableMs() != c.age || got.GetBaseMs() != c.age {
			t.Errorf("at %d: got %d, %d, want %d", c.at, got.GetRestorableMs(), got.GetBaseMs(), c.age)
		}
	}
}
