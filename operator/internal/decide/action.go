package decide

import (
	"fmt"
	"time"
)

// Kind is what an action does.
type Kind string

// The kinds of actions.
const (
	Wait         Kind = "Wait"         // nothing; Why says for what
	Found        Kind = "Found"        // remember Names as founders
	Founded      Kind = "Founded"      // remember that the cluster exists
	CreateClaim  Kind = "CreateClaim"  // of Member, with Serial, in Zone
	NoteRemoved  Kind = "NoteRemoved"  // note on the claim of Member that it was removed
	DeleteClaim  Kind = "DeleteClaim"  // of Member
	ResizeClaim  Kind = "ResizeClaim"  // of Member
	CreatePod    Kind = "CreatePod"    // of Member; Names: the founders, if it may found the cluster
	DeletePod    Kind = "DeletePod"    // of Member
	Add          Kind = "Add"          // ask the cluster to add Member
	Remove       Kind = "Remove"       // ask it to remove ID
	Replace      Kind = "Replace"      // ask it to let Member take the place of ID
	Cancel       Kind = "Cancel"       // ask it to cancel the job ID, for the sake of Member
	Cordon       Kind = "Cordon"       // ask it to keep ID from leading
	Uncordon     Kind = "Uncordon"     // ask it to let ID lead again
	Recover      Kind = "Recover"      // remember Recovery, that of Member
	StopMembers  Kind = "StopMembers"  // remember that members are being stopped for it
	RunRecovery  Kind = "RunRecovery"  // make the pod that runs `quorate recover` on the claim of Member, as Recovery says
	EndRecovery  Kind = "EndRecovery"  // delete that pod
	Recovered    Kind = "Recovered"    // remember that Member is recovered, without Names
	RecoverFails Kind = "RecoverFails" // remember why it failed
	Unchanged    Kind = "Unchanged"    // note that the command changed nothing on the claim of Member
	LeaveOut     Kind = "LeaveOut"     // note that no process starts on the claim of Member any more
	VoidConsent  Kind = "VoidConsent"  // remember that Consent counts no more
)

// whilePaused are the actions that a pause does not hold up. They start and stop no member: they remember what has happened,
// and take back a recovery whose command was not started.
var whilePaused = []Kind{Founded, VoidConsent, RecoverFails, Recovered, LeaveOut, EndRecovery}

// Action is what to do.
type Action struct {
	Kind   Kind
	Member string
	ID     uint64
	Serial int64
	Zone   string
	Names  []string
	// Recovery is what Recover and RunRecovery are about.
	Recovery *Recovery
	Consent  *Consent
	Evict    bool // DeletePod of a member that works: the disruption budget is asked, too
	// Unstarted is of DeletePod: the pod has not started, and one that has meanwhile is not deleted.
	Unstarted bool
	// Forget is of RecoverFails and LeaveOut: what the status has of the lost voters counts no more.
	Forget bool
	Why    string // a sentence's end, for people: "replace c-3: its node is lost"
}

// String is what is done and why, for the status.
func (a Action) String() string {
	if a.Kind == Wait {
		return a.Why
	}
	if a.Member == "" {
		return fmt.Sprintf("%s: %s", a.Kind, a.Why)
	}
	return fmt.Sprintf("%s %s: %s", a.Kind, a.Member, a.Why)
}

func wait(format string, args ...any) *Action {
	return &Action{Kind: Wait, Why: fmt.Sprintf(format, args...)}
}

func after(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text
}

// Pause is how long to wait before the next look: short while something is under way.
func Pause(a Action) time.Duration {
	switch {
	case a.Kind != Wait:
		return 0
	case a.Why == "":
		return 10 * time.Second
	}
	return 2 * time.Second
}
