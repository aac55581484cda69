package turns

import "github.com/quorate/quorate/internal/backup/prune"

// Faults make a Machine wrong on purpose, for the simulator's negative controls.
type Faults struct {
	EarlyAck  bool // what is put counts as put when it begins
	SilentGap bool // gaps are not noted at the place
	Skips     bool // a member that takes over goes on with what it applies now
	Former    bool // a turn is given entries that are for the recipients of a later policy
	Forgets   bool // the rule's window is a nanosecond
	Crowds    bool // more operations are asked for at once than the place does
	Believes  bool // nothing that members reported counts beside the names at the place
	Prune     prune.Faults
}
