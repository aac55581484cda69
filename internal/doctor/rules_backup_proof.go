package doctor

import (
	"fmt"

	"github.com/quorate/quorate/api/quoratepb"
)

// proofs is whether the backup, which is on, was proven by a restore.
func proofs(b *quoratepb.ObservedBackup) []Finding {
	encrypted := b.GetRecipients() > 0
	say := func(severity Severity, format string, args ...any) []Finding {
		return []Finding{found(BackupUnproven, severity, nil, BackupProofCommand(encrypted), format, args...)}
	}
	tried := b.GetVerifiedMs()
	remedy := BackupRemedy(b.GetWhy(), b.GetBaseMs(), b.GetBaseSeconds())
	if tried != 0 && b.GetFailed() {
		return say(NextFailure, "the backup cannot be restored as it is: %s (tried %s ago). %s", b.GetWhy(), span(tried),
			remedy)
	}
	if tried != 0 && b.GetDamaged() > 0 && b.GetProven() {
		return say(SlowerThanIs, "the newest state of the backup was proven %s ago, without objects that are damaged or gone "+
			"(%d): %s. %s", span(tried), b.GetDamaged(), b.GetWhy(), remedy)
	}
	if tried != 0 && b.GetProven() && b.GetWhy() != "" {
		return say(Advice, "the newest state of the backup was proven %s ago, and not all of it: %s", span(tried), b.GetWhy())
	}
	every := b.GetVerifySeconds() * 1000
	age, late := b.GetProvenMs(), BackupProofOld(b.GetVerifySeconds(), encrypted)
	text, severity := fmt.Sprintf("no restore of the backup was proven for %s", span(age)), SlowerThanIs
	if age == 0 {
		age, late, severity = b.GetSinceMs(), max(neverProven, every), Advice
		text = fmt.Sprintf("no restore of the backup was ever proven, %s after it was started", span(age))
	}
	switch {
	case age < late:
		return nil
	case encrypted:
		return say(severity, "%s: members cannot prove an encrypted backup; only an operator can", text)
	case every == 0:
		return say(Advice, "%s: members do not try (--verify-every 0)", text)
	case tried != 0 && !b.GetProven() && b.GetWhy() != "":
		return say(SlowerThanIs, "%s: the last try, %s ago, did not get that far: %s", text, span(tried), b.GetWhy())
	}
	return say(SlowerThanIs, "%s, and no member says why", text)
}
