package check

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/base/level"
)

// Soaks is the law of the time that counts towards the next feature level: since a soak began no more counts than there was
// without a finding of a member (package raising, invariant 3). Time that could have counted and did not hides later faults.
type Soaks struct {
	// Counted is how much time may have counted since the run began, as the world sees it.
	Counted time.Duration
	// Drift is how much faster than true time a member's clock may run.
	Drift float64

	level   level.Level // that soaks; zero: none
	seconds int64
	began   time.Duration // Counted, when the soak began
	Noted   uint64        // how often time was noted
}

// soakSlack is the time that a leader may have counted wrongly, where it was paused between two looks.
const soakSlack = time.Second

// applied compares the time that the state machine has noted for a level; wrong says what is wrong with it, if anything is.
func (k *Soaks) applied(soaks level.Level, seconds int64) (wrong string) {
	if soaks != k.level || seconds < k.seconds {
		k.level, k.began = soaks, k.Counted
	}
	if seconds > k.seconds {
		k.Noted++
	}
	k.seconds = seconds
	most := time.Duration(float64(k.Counted-k.began)*(1+k.Drift)) + soakSlack
	if noted := time.Duration(seconds) * time.Second; noted > most {
		wrong = fmt.Sprintf("%v count towards level %d, and for at most %v since the soak began did members find nothing",
			noted, soaks, most)
	}
	return wrong
}
