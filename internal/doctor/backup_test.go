package doctor_test

import (
	"strings"
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
		"entries that are sealed each hour": {On: true, SinceMs: 1 << 40, RestorableMs: 7199_000, ReportedMs: 3600_000,
			SealMs: 3600_000, VerifySeconds: 86400, VerifiedMs: 60_000, ProvenMs: 60_000, Proven: true},
		"started, with entries that are sealed each hour": {On: true, SinceMs: 3600_000, SealMs: 3600_000},
		"proven by an operator this week": {On: true, SinceMs: 1 << 40, RestorableMs: 5000, VerifySeconds: 86400, Recipients: 1,
			VerifiedMs: 6 * 86400_000, ProvenMs: 6 * 86400_000, Proven: true},
		"proven by an operator, who does so each month": {On: true, SinceMs: 1 << 40, RestorableMs: 5000, VerifySeconds: 30 * 86400,
			Recipients: 1, VerifiedMs: 40 * 86400_000, ProvenMs: 40 * 86400_000, Proven: true},
	} {
		h := hospital{healthy(3)}
		h.everywhere(func(o *quoratepb.Observation) { o.Backup = b })
		if got := doctor.Judge(h.Collected); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Ensure that an operator is never told to remove a segment, nor anything where objects are gone, and that each cure tells the
// cluster how the try ended.
func TestJudge_backupRemedy(t *testing.T) {
	const copied, nothing = "Copy the objects that are named below obj/ or base/ elsewhere first, remove only them", "There is nothing to remove"
	for _, c := range []struct {
		why, want, not string
		spoil          func(*quoratepb.ObservedBackup)
	}{
		{"object obj/cc/aa: damaged", copied + " and nothing below log/, and run `quorate backup verify` again", nothing, nil},
		{"object base/cc/aa.json: entry 9: no sum\nrevision 8 cannot be restored: no base", copied, nothing, nil},
		{"object log/cc/aa.ql: missing", nothing, "remove only", nil},
		{"revision 8 cannot be restored: no segment has entry 7", "the next base, which is due in 5 hours if something is written, or " +
			"sooner with a shorter --base-every, leads past it", "remove only", nil},
		{"objects are gone", "which is due as soon as something is written, leads past it", "remove only",
			func(b *quoratepb.ObservedBackup) { b.BaseMs = 7 * 3600_000 }},
		{"objects are gone", "and the next base leads past it", "due",
			func(b *quoratepb.ObservedBackup) { b.BaseSeconds = 0 }},
	} {
		for _, proven := range []bool{false, true} {
			h := hospital{healthy(3)}
			h.everywhere(func(o *quoratepb.Observation) {
				b := backup()
				b.BaseSeconds, b.Proven, b.Failed, b.Damaged, b.Why = 6*3600, proven, !proven, 1, c.why
				if c.spoil != nil {
					c.spoil(b)
				}
				o.Backup = b
			})
			got := doctor.Judge(h.Collected)
			if len(got) != 1 || got[0].Code != doctor.BackupUnproven || !strings.Contains(got[0].Sentence, c.want) ||
				strings.Contains(got[0].Sentence, c.not) || !strings.HasSuffix(got[0].Cure, " --report --endpoints MEMBERS") {
				t.Errorf("%q, proven %v: %+v", c.why, proven, got)
			}
		}
	}
}
