package moments

import (
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Interval is the time between two moments of one leader.
const Interval = 10 * time.Second

// View is what a leader knows. It reads all of it before it looks at its clock.
type View struct {
	Self     consensus.MemberID
	Active   level.Level
	Revision kv.Revision // that is applied here
	Noted    kv.Moments  // of apply.Machine
}

// Teller decides for one leader. The zero value is ready.
type Teller struct {
	Every time.Duration // zero: Interval

	told time.Time // by the monotonic clock; zero: not since the term began
}

// Rest ends a term: this member does not lead.
func (t *Teller) Rest() { t.told = time.Time{} }

// Look returns the command to propose now, if there is one. now is of a clock that does not go back, wall of the one that the
// moment is told by; both are read after v.
func (t *Teller) Look(v *View, now, wall time.Time) (command kv.Command, due bool) {
	every := t.Every
	if every == 0 {
		every = Interval
	}
	seen := kv.Revision(1) // that of an empty store
	if n := len(v.Noted); n > 0 {
		seen = v.Noted[n-1].Seen
	}
	at := wall.UnixMilli()
	switch {
	case v.Active < level.Second, v.Revision <= seen, at < 0 || at > kv.MostMomentTime,
		!t.told.IsZero() && now.Sub(t.told) < every:
		return command, false
	}
	t.told = now
	return kv.Command{Moment: &kv.MomentOp{Time: at, Member: uint64(v.Self), Seen: v.Revision}}, true
}
