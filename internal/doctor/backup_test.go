package doctor_test

import (
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/doctor"
)

// backup is one that is well.
func backup() *quoratepb.ObservedBackup {
	return &quoratepb.ObservedBackup{On: true, Member: 2, SinceMs: 30 * 24 * 3600_000, ReportedMs: 4000, RestorableMs: 5000,
		RestorableRevision: 79_000, BaseMs: 3600_000, VerifiedMs: 3600_000, VerifiedRevision: 70_000, Proven: true,
		VerifySeconds: 86400, ProvenMs: 3600_000}
}

// Ensure that nothing is said of a backup that is well, that has just been started, or that is off, whatever it was before.
func TestJudge_backupWell(t *testing.T) {
	off := backup()
	off.On, off.RestorableMs, off.Proven, off.Trouble = false, 1<<40, false, "full"
	for name, b := range map[string]*quoratepb.ObservedBackup{"well": backup(), "off": off, "none": nil,
		"just started": {On: true, SinceMs: 60_000}, "started again": {On: true, SinceMs: 60_000, RestorableMs: 1 << 30, ReportedMs: 1 << 30,
			VerifiedMs: 3600_000, Proven: true, ProvenMs: 3600_000},
		"a try that did not get far, today": {On: true, SinceMs: 1 << 40, RestorableMs: 5000, VerifySeconds: 86400,
			VerifiedMs: 60_000, ProvenMs: 3600_000, Why: "busy"},
		"a proof each month": {On: true, SinceMs: 1 << 40, RestorableMs: 5000, VerifySeconds: 30 * 86400,
			VerifiedMs: 40 * 86400_000, ProvenMs: 40 * 86400_000, Proven: true},
	} {
		h := hospital{healthy(3)}
		h.everywhere(func(o *quoratepb.Observation) { o.Backup = b })
		if got := doctor.Judge(h.Collected); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
