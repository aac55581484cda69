package autopilot

import (
	"errors"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// writeInterval is how far apart writes are that only tell people what is going on.
const writeInterval = time.Second

// Driver decides what the leader does for the jobs. The zero value is ready.
//
//	Next --> Write --> written: Next, with the new row    not written: look again later
//	     --> Change --> Changed     Transfer --> Transferred
//	     --> nothing: look again later
type Driver struct {
	messageAt time.Time
	obstacle  string           // why the last attempt at a change or a transfer failed
	of        membership.JobID // whose attempt that was
	refused   *refusal
	runs      map[membership.JobID]*run // jobs that have begun
}

// run is for how long a job has run: waitedMS, when this leader saw it first in its term, and since then by its clock alone.
type run struct {
	seen            time.Time
	waitedMS, saved int64
}

// refusal is a change that the core refused for good in one configuration.
type refusal struct {
	job     membership.JobID
	version uint64 // of its row
	config  consensus.ConfigID
	end     membership.Action
}

// Step is what is to be done now: one of Write, Change and Transfer, or nothing.
type Step struct {
	Busy bool // a job has not ended
	Row  Row  // of the job that the step is for
	// Write is to be written; then Next is asked again.
	Write *Write
	// Moved says that Write is more than another message.
	Moved bool

	Change   *consensus.ChangeRequest
	Caution  membership.Caution // with which new peer URLs are checked before
	Transfer consensus.MemberID

	action membership.Action
	config consensus.ConfigID // of the view
}

// Next returns what to do for the job whose turn it is: the first one that is not ended, or, while that stands aside, the next
// one that need not wait for it.
func (d *Driver) Next(now time.Time, rows []Row, view *membership.View) Step {
	var step Step
	waits := false
	for i := range rows {
		row := rows[i]
		if row.State.Ended() || waits && (view.Faults.NobodyPasses || !row.Passes()) {
			continue
		}
		step.Busy = true
		d.age(now, &row)
		if row.State == membership.StateQueued {
			row.Spec.Expected = row.Spec.Due(Jobs(rows[:i]), view.ID)
		}
		action := membership.Next(&row.Job, view)
		if end := d.refusedFor(&row, view); end != nil {
			action = *end
		}
		if write, moved := d.record(now, &row, &action, view, rows); write != nil {
			return Step{Busy: true, Row: row, Write: write, Moved: moved}
		}
		if waits = row.StandsAside(&action); !waits {
			step.Row, step.action, step.config = row, action, view.ID
			step.act(&action, view)
			return step
		}
	}
	return step
}

// age says in row for how long its job has run.
func (d *Driver) age(now time.Time, row *Row) {
	if row.Started == 0 {
		return
	}
	r := d.runs[row.ID]
	if r == nil {
		r = &run{seen: now, waitedMS: row.WaitedMS, saved: row.WaitedMS}
		if d.runs == nil {
			d.runs = map[membership.JobID]*run{}
		}
		d.runs[row.ID] = r
	}
	row.WaitedMS = r.waitedMS + max(0, now.Sub(r.seen).Milliseconds())
}

// unsaved reports whether so much of the age of a job is known here alone that the next leader should be told.
func (d *Driver) unsaved(job *membership.Job) bool {
	r := d.runs[job.ID]
	return r != nil && job.WaitedMS-r.saved > job.SaveAfterMS()
}

// act makes the step that a job takes next, once its row says so.
func (s *Step) act(action *membership.Action, view *membership.View) {
	switch {
	case action.Change != nil:
		request := *action.Change
		if request.Expected == (consensus.ConfigID{}) {
			request.Expected = view.ID // of two leaders at most one gets its way
		}
		s.Change, s.Caution = &request, membership.Cautious
		if s.Row.Spec.Force != "" {
			s.Caution = membership.Forced
		}
	case action.Transfer != consensus.NoMember:
		s.Transfer = action.Transfer
	}
}

// record returns how far the job is, if it has to be written before the action is taken: that it runs, in which phase it is,
// how it ended, and, at times, what is going on.
func (d *Driver) record(
	now time.Time, row *Row, action *membership.Action, view *membership.View, rows []Row,
) (write *Write, moved bool) {
	next := row.Job
	next.Note(action, view)
	next.Message = d.words(row.ID, action, next.Phase != row.Phase)
	moved = next.State != row.State || next.Phase != row.Phase || next.Expired != row.Expired
	unsaved := d.unsaved(&next)
	if !moved && !unsaved && (sameClass(next.Message, row.Message) || now.Sub(d.messageAt) < writeInterval) {
		return nil, false
	}
	d.messageAt = now
	if r := d.runs[next.ID]; r != nil {
		r.saved = next.WaitedMS
	}
	if action.End != "" {
		d.obstacle = ""
	}
	next.Updated = view.Now
	return writeOf(&next, row.Version, rows), moved
}

// Restart forgets why an attempt failed, and since when jobs were seen to run: another term has begun.
func (d *Driver) Restart() { d.obstacle, d.refused, d.runs = "", nil, nil }

// Transferred takes note of what became of a transfer of leadership.
func (d *Driver) Transferred(step *Step, err error) {
	if err != nil {
		d.of, d.obstacle = step.Row.ID, strings.TrimPrefix(err.Error(), "member: ")
	}
}

// Changed takes note of what became of a change, and reports whether to look again at once.
func (d *Driver) Changed(step *Step, err error) (again bool) {
	var refused *membership.RefusedError
	var address *membership.AddressError
	switch {
	case errors.As(err, &address):
		d.of, d.obstacle = step.Row.ID, address.Text
	case err == nil:
		d.obstacle = ""
		return true
	case !errors.As(err, &refused):
		// It may or may not have happened, or it cannot commit yet: the next View tells.
	case asksAgain(refused.Reason) || step.Change.Abort:
	case passes(refused.Reason):
		d.of, d.obstacle = step.Row.ID, refused.Reason.String()
	default:
		d.refused = &refusal{job: step.Row.ID, version: step.Row.Version, config: step.config, end: membership.Action{
			Phase: step.action.Phase, End: membership.StateFailed,
			Message: bounded(step.action.Message) + " was refused: " + refused.Reason.String(),
		}}
		return true
	}
	return false
}

// refusedFor returns how a job ends whose change was refused for good, if nothing has changed since.
func (d *Driver) refusedFor(row *Row, view *membership.View) *membership.Action {
	r := d.refused
	switch {
	case r == nil || r.job != row.ID:
		return nil
	case r.version != row.Version || r.config != view.ID: // it was asked for a configuration of the past
		d.refused = nil
		return nil
	}
	return &r.end
}

// asksAgain reports whether a refusal only says that the View was old.
func asksAgain(reason consensus.RefusalReason) bool {
	switch reason {
	case consensus.ReasonNoLeader, consensus.ReasonBusy, consensus.ReasonStaleConfig, consensus.ReasonChangePending:
		return true
	}
	return false
}

// passes reports whether what a refusal complains of may end by itself: members come back, and learners catch up.
func passes(reason consensus.RefusalReason) bool {
	return reason == consensus.ReasonLearnerLags || reason == consensus.ReasonQuorumLost ||
		reason == consensus.ReasonUnbound
}
