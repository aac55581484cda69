package shipping

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
)

const (
	// ReportEvery is how often the member that ships reports.
	ReportEvery = 10 * time.Second
	// DefaultPatience is after how long without a report another member is appointed.
	DefaultPatience = 4 * ReportEvery
	// DefaultAway is after how long another member is appointed when the leader does not hear the one that ships.
	DefaultAway = ReportEvery
	// DefaultTroubled is after how long another member is appointed when the place takes nothing of the one that ships.
	DefaultTroubled = 6 * ReportEvery
	// DefaultRefusal is for how long a member comes last that may not ship to the place. Its operator may start it anew with
	// another setting.
	DefaultRefusal = time.Hour
	// DefaultMoveAfter is for how long a leader ships while another member could.
	DefaultMoveAfter = 10 * time.Minute
)

// View is what a leader knows of the backup and the members.
type View struct {
	Row    *kv.BackupRow
	Status *raft.Status // of the leader's own core
}

// Appointer decides for one leader. The zero value is ready; Rest ends a term.
type Appointer struct {
	Patience  time.Duration // zero: DefaultPatience
	Away      time.Duration // zero: DefaultAway
	Troubled  time.Duration // zero: DefaultTroubled
	MoveAfter time.Duration // zero: DefaultMoveAfter

	led     time.Time // when this member first looked in its term; zero: not yet
	since   time.Time // when the turn, or the report below, was first seen
	heard   time.Time // when the member that ships was heard last
	well    time.Time // when the place was last known to take what it ships, or its turn began
	turn    uint64
	reports uint64
	// failed has members that did not report in their turn, or did not ship. They come last for a time.
	failed map[consensus.MemberID]failure
	// refused is the turn whose member said that it may not ship to the place.
	refused uint64
}

// failure is that of a member to ship.
type failure struct {
	at, until time.Time
}

// Rest forgets what was seen: this member does not lead.
func (a *Appointer) Rest() {
	*a = Appointer{Patience: a.Patience, Away: a.Away, Troubled: a.Troubled, MoveAfter: a.MoveAfter}
}

// Look returns the command to propose now, if there is one.
func (a *Appointer) Look(now time.Time, v *View) (command kv.Command, due bool) {
	if a.led.IsZero() {
		a.led = now
	}
	row := v.Row
	if a.since.IsZero() || row.Turn != a.turn || row.Reports != a.reports {
		switch {
		case row.Turn != a.turn, row.Progress.Trouble == "":
			a.well = now
		}
		if row.Reports != a.reports && row.Turn == a.turn && row.Progress.Trouble == "" {
			delete(a.failed, consensus.MemberID(row.Member))
		}
		a.since, a.turn, a.reports = now, row.Turn, row.Reports
	}
	if !row.Policy.On {
		return command, false
	}
	silent := a.silent(now, v)
	a.noteRefusal(now, row)
	to, found := a.choose(now, v)
	if !found || !a.replaces(now, v, to, silent) {
		return command, false
	}
	command.Backup = &kv.BackupOp{Kind: kv.BackupAppoint, Turn: row.Turn, Member: uint64(to)}
	return command, true
}

// silent reports whether the member that ships has not reported for too long, or only that it cannot ship, and notes that.
func (a *Appointer) silent(now time.Time, v *View) bool {
	present := consensus.MemberID(v.Row.Member)
	if a.heard.IsZero() || !away(v, present) || a.since.Equal(now) {
		a.heard = now
	}
	late := now.Sub(a.since) >= cmp.Or(a.Patience, DefaultPatience) || now.Sub(a.heard) >= cmp.Or(a.Away, DefaultAway) ||
		v.Row.Progress.Trouble != "" && now.Sub(a.well) >= cmp.Or(a.Troubled, DefaultTroubled)
	if present == consensus.NoMember || !late {
		return false
	}
	for id, f := range a.failed {
		if !v.Status.Config.Contains(id) || !now.Before(f.until) {
			delete(a.failed, id)
		}
	}
	if a.refused == 0 || a.refused != v.Row.Turn {
		a.fail(present, failure{now, now.Add(cmp.Or(a.MoveAfter, DefaultMoveAfter))})
	}
	a.since, a.heard, a.well = now, now, now // it may be the only one: it is given time again
	return true
}

// noteRefusal notes that a member may not ship to the place, so that another one is appointed at once.
func (a *Appointer) noteRefusal(now time.Time, row *kv.BackupRow) {
	if !row.Progress.Refused || row.Member == 0 || a.refused == row.Turn {
		return
	}
	a.refused = row.Turn
	a.fail(consensus.MemberID(row.Member), failure{now, now.Add(DefaultRefusal)})
}

func (a *Appointer) fail(id consensus.MemberID, f failure) {
	if a.failed == nil {
		a.failed = map[consensus.MemberID]failure{}
	}
	a.failed[id] = f
}

// failing returns when a member failed to ship, if it comes last for that; zero: it does not.
func (a *Appointer) failing(now time.Time, id consensus.MemberID) time.Time {
	if f := a.failed[id]; now.Before(f.until) {
		return f.at
	}
	return time.Time{}
}

// away reports whether the leader has not heard a member for an election timeout.
func away(v *View, id consensus.MemberID) bool {
	at := slices.IndexFunc(v.Status.Progress, func(p raft.PeerProgress) bool { return p.ID == id })
	return at >= 0 && !v.Status.Progress[at].RecentActive
}

// replaces reports whether a member is to take the place of the one that ships now.
func (a *Appointer) replaces(now time.Time, v *View, to consensus.MemberID, silent bool) bool {
	present := consensus.MemberID(v.Row.Member)
	member, there := v.Status.Config.Member(present)
	switch {
	case present == consensus.NoMember, !there:
		return true
	case to == present:
		return false
	case silent:
		return true
	case v.Row.Progress.Refused && a.failing(now, to).IsZero():
		return true
	case member.Cordoned:
		next, _ := v.Status.Config.Member(to)
		return !next.Cordoned
	case present == v.Status.ID:
		return now.Sub(a.led) >= cmp.Or(a.MoveAfter, DefaultMoveAfter)
	}
	return false
}

// candidate is a member that may ship. The least one does.
type candidate struct {
	id       consensus.MemberID
	cordoned bool
	failed   time.Time // zero: it did not
	rank     int       // learners, voters, the leader
}

// choose returns the member that ships best.
func (a *Appointer) choose(now time.Time, v *View) (consensus.MemberID, bool) {
	var all []candidate
	others := 0
	for i := range v.Status.Progress {
		p := &v.Status.Progress[i]
		member, there := v.Status.Config.Member(p.ID)
		if !there || p.Leaving {
			continue
		}
		others++
		if !p.RecentActive || !p.CaughtUp || member.Promote || member.Joining {
			continue
		}
		c := candidate{id: p.ID, cordoned: member.Cordoned, failed: a.failing(now, p.ID)}
		if v.Status.Config.IsVoter(p.ID) {
			c.rank = 1
		}
		all = append(all, c)
	}
	// Others may be about to be heard: a new leader waits before it ships itself.
	if others == 0 || now.Sub(a.led) >= cmp.Or(a.Patience, DefaultPatience) {
		own, _ := v.Status.Config.Member(v.Status.ID)
		all = append(all, candidate{id: v.Status.ID, cordoned: own.Cordoned, failed: a.failing(now, v.Status.ID), rank: 2})
	}
	if len(all) == 0 {
		return consensus.NoMember, false
	}
	best := slices.MinFunc(all, func(x, y candidate) int {
		return cmp.Or(x.failed.Compare(y.failed), compareBools(x.cordoned, y.cordoned), cmp.Compare(x.rank, y.rank),
			cmp.Compare(x.id, y.id))
	})
	return best.id, true
}

func compareBools(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}
