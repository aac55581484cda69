package doctor

import (
	"fmt"
	"strings"
)

// Ages of a continuous backup, in milliseconds, from which on something is wrong with it: at least these, and more where its
// policy lets it be late.
const (
	backupLate     = 5 * 60_000
	backupGapTold  = 24 * 3600_000
	backupUnproven = 48 * 3600_000     // since the last proof of a backup that members prove
	sealedUnproven = 7 * 24 * 3600_000 // since that of one which only an operator can prove
	neverProven    = 24 * 3600_000     // since it was started
)

// BackupLate is the age of the last state that can be restored from which on a backup is behind, in milliseconds: entries wait
// for sealMs before they are sealed.
func BackupLate(sealMs int64) int64 { return max(backupLate, 2*sealMs) }

// BackupProofOld is the age of a proof from which on another one is missing, in milliseconds. Members try one every
// verifySeconds, unless it is encrypted: only an operator proves it then.
func BackupProofOld(verifySeconds int64, encrypted bool) int64 {
	if encrypted {
		return max(sealedUnproven, 2*verifySeconds*1000)
	}
	return max(backupUnproven, 2*verifySeconds*1000)
}

// BackupProofCommand is the command by which an operator proves a backup and tells the cluster.
func BackupProofCommand(encrypted bool) string {
	if encrypted {
		return "quorate backup verify --from URL --identity FILE --report --endpoints MEMBERS"
	}
	return "quorate backup verify --from URL --report --endpoints MEMBERS"
}

// BackupRemedy says what an operator does about the objects that a try to restore named, in sentences without the last full
// stop. baseMs is the age of the newest base, and baseSeconds how often one is made; zero: it is not known.
func BackupRemedy(why string, baseMs, baseSeconds int64) string {
	next := "the next base"
	switch left := baseSeconds*1000 - baseMs; {
	case baseSeconds == 0 || baseMs == 0:
	case left <= 0:
		next += ", which is due as soon as something is written,"
	default:
		next += fmt.Sprintf(", which is due in %s if something is written, or sooner with a shorter --base-every,", span(left))
	}
	if strings.Contains(why, "object obj/") || strings.Contains(why, "object base/") {
		return "Restores leave out what is damaged by themselves, but " + next + " may need the same file. Copy the objects " +
			"that are named below obj/ or base/ elsewhere first, remove only them and nothing below log/, and run " +
			"`quorate backup verify` again"
	}
	return "There is nothing to remove: restores leave out what is damaged or gone by themselves, and " + next +
		" leads past it"
}
