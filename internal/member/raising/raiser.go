package raising

import (
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
)

// View is what a leader knows of levels and members.
type View struct {
	Active, Common level.Level // of apply.Machine
	Rise           level.Rise
	Members        kv.LevelView
	AllPublished   bool         // all members have published a level
	Flag           level.Policy // this member's: the policy of a cluster that has none yet
	Returned       bool         // a downgrade is under way, and all members run builds that it goes back to
	// Paused says why no time counts now; empty: it counts. See function Paused.
	Paused string
}

// MostBetween is the longest time between two looks that counts: a process that stood still saw nothing of it. Between two
// looks a leader may wait for other duties, each for a few seconds.
const MostBetween = 20 * time.Second

// noteShare is how many parts of a soak are noted, each with an entry of the log, within leastNote and mostNote.
const (
	noteShare = 96
	leastNote = time.Second
	mostNote  = 15 * time.Minute
)

// Raiser decides for one leader. The zero value is ready; Rest ends a term.
type Raiser struct {
	Hasty    bool // breaks invariant 1, for a control of the simulator: it asks for no policy
	Heedless bool // breaks invariant 3, for another one: it counts whatever members find

	looked  time.Time     // zero: not since the term began
	level   level.Level   // that soaks
	noted   time.Duration // in the state machine, at the last look
	pending time.Duration // counted and not noted there
}

// Rest forgets what was counted and not noted: this member does not lead.
func (r *Raiser) Rest() { *r = Raiser{Hasty: r.Hasty, Heedless: r.Heedless} }

// Look returns the command to propose now, if there is one.
func (r *Raiser) Look(now time.Time, v *View) (command kv.Command, due bool) {
	r.count(now, v)
	switch born := min(v.Rise.Born, v.Common); {
	case (v.Rise.Policy.Kind == level.PolicyUnset || v.Rise.Born == 0) && v.AllPublished && v.Flag.Valid():
		command.LevelPolicy = &kv.LevelPolicyOp{Policy: v.Flag, Initial: true, Of: v.Members}
	case v.Returned:
		command.LevelPolicy = &kv.LevelPolicyOp{Returned: true, Of: v.Members}
	case v.Common <= v.Active:
		return command, false
	case v.Rise.Allows(v.Common), r.Hasty:
		command.Raise = &kv.RaiseOp{Level: v.Common, Of: v.Members}
	case born > v.Active && v.Rise.Target.IsZero():
		command.Raise = &kv.RaiseOp{Level: born, Of: v.Members}
	case v.Rise.Level != v.Common:
		command.Soak = &kv.SoakOp{Level: v.Common, Of: v.Members}
	case r.pending >= r.noteAfter(&v.Rise):
		command.Soak = &kv.SoakOp{Level: v.Common, Of: v.Members,
			Seconds: int64((v.Rise.Soaked(v.Common) + r.pending) / time.Second)}
	default:
		return command, false
	}
	return command, true
}

// count adds the time since the last look to what is pending, and takes from it what the state machine has noted meanwhile.
func (r *Raiser) count(now time.Time, v *View) {
	passed := time.Duration(0)
	if !r.looked.IsZero() {
		passed = now.Sub(r.looked)
	}
	r.looked = now
	noted := v.Rise.Soaked(v.Rise.Level)
	if v.Rise.Level != r.level || noted < r.noted {
		r.level, r.pending, r.noted = v.Rise.Level, 0, noted
		return
	}
	r.pending, r.noted = max(0, r.pending-(noted-r.noted)), noted
	paused := v.Paused != "" && !r.Heedless
	if !paused && r.level != 0 && r.level == v.Common && passed > 0 && passed <= MostBetween {
		r.pending += passed
	}
}

// noteAfter is how much time is noted at once.
func (r *Raiser) noteAfter(rise *level.Rise) time.Duration {
	if rise.Policy.Kind != level.PolicySoak {
		return mostNote
	}
	part := min(max(rise.Policy.Soak()/noteShare, leastNote), mostNote)
	return min(part, max(leastNote, rise.Policy.Soak()-rise.Soaked(rise.Level)))
}
