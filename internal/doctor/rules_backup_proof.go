package doctor

import (
	"fmt"

	"github.com/quorate/quorate/api/quoratepb"
)

// Ages in milliseconds from which on a backup should have been proven: the first time, and since the last one. Where members
// try less often, they are as much later.
const (
	backupNeverProven = 24 * 3600_000
	backupUnproven    = 48 * 3600_000
)

const cureProof = "quorate backup verify --from URL --report"

// proofs is whether the backup, which is on, was proven by a restore.
func proofs(b *quoratepb.ObservedBackup) []Finding {
	say := func(severity Severity, format string, args ...any) []Finding {
		return []Finding{found(BackupUnproven, severity, nil, cureProof, format, args...)}
	}
	tried := b.GetVerifiedMs()
	if tried != 0 && b.GetFailed() {
		return say(NextFailure, "the backup cannot be restored as it is: %s (tried %s ago). Remove an object that is named as "+
			"damaged from the place, so that restores take others, and a new base is made", b.GetWhy(), span(tried))
	}
	if tried != 0 && b.GetDamaged() > 0 && b.GetProven() {
		return say(SlowerThanIs, "the backup was proven %s ago, although objects of it are damaged (%d): %s. Others replaced "+
			"them; remove them from the place", span(tried), b.GetDamaged(), b.GetWhy())
	}
	every := b.GetVerifySeconds() * 1000
	age, late := b.GetProvenMs(), max(backupUnproven, 2*every)
	text := fmt.Sprintf("no restore of the backup was proven for %s", span(age))
	if age == 0 {
		age, late = b.GetSinceMs(), max(backupNeverProven, every)
		text = fmt.Sprintf("no restore of the backup was ever proven, %s after it was started", span(age))
	}
	switch {
	case age < late:
		return nil
	case every == 0:
		return say(Advice, "%s: members do not try (--verify-every 0)", text)
	case tried != 0 && !b.GetProven() && b.GetWhy() != "":
		return say(SlowerThanIs, "%s: the last try, %s ago, did not get that far: %s", text, span(tried), b.GetWhy())
	}
	return say(SlowerThanIs, "%s, and no member says why", text)
}
