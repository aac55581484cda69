package member

import (
	"fmt"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// conflictWords explain a refused log to the operator, and what to do. own is the member that refuses it.
func conflictWords(e *raft.LogConflict, own, leader string) string {
	return fmt.Sprintf("%s refuses the log of its leader %s (%v) of term %d: entry %v there is not entry %d here, which is "+
		"committed. If this lasts, a disk was put back to an earlier state, or lost: acknowledged writes may be missing at "+
		"%s and at those that follow it, and %s may have the only copy. Empty, reset and remove no member. Stop the clients, "+
		"then all members, keep all data directories, and see with `quorate recover --data-dir DIR --dry-run` what each has. "+
		"To go on with what %s has, run `quorate recover` on its directory, where --force-behind gives up what was written "+
		"at the others since, and add new members. To go on with the others, start them, %s, and keep what was "+
		"moved", own, leader, e.Leader, e.Term, e.At, e.At.Index, leader, own, own,
		typed.StartOver("the directory of "+own, own, "", own))
}
