package membership

import "fmt"

// joinWithin is how long newcomers may take to start if the Spec does not say otherwise.
const joinWithin = hourMS

// within is how long the newcomers of s may take to start, in milliseconds.
func (s *Spec) within() int64 {
	if s.JoinWithinMS == 0 {
		return joinWithin
	}
	return s.JoinWithinMS
}

// overdue reports whether a newcomer has not been started in time.
func (g *goal) overdue(j *Job) bool {
	waits := j.Started > 0 && g.phase() == PhaseStart && len(g.own()) > 0
	waited := j.WaitedMS
	if g.view.Faults.JobByClocks {
		waited = g.view.Now - j.Started
	}
	return waits && waited > j.Spec.within() && !g.view.Faults.NeverOverdue
}

// takeBack undoes a job whose newcomers did not start. It fails, so that no operator takes it for done.
func (g *goal) takeBack(j *Job) Action {
	action := g.undo()
	if action.End == StateCancelled {
		action.End = StateFailed
		action.Message = fmt.Sprintf("not all newcomers were started within %s, and those that this job added were taken "+
			"back: ask for the change again when their machines are ready; %s", seconds(j.Spec.within()), action.Message)
	}
	return action
}

// StandsAside reports whether jobs behind j may run while j takes action a, because j waits for something that may never
// happen: a newcomer is not started, a drain finds no successor, or the job has run for longer than its join timeout.
func (j *Job) StandsAside(a *Action) bool {
	if !a.Wait {
		return false
	}
	return a.Phase == PhaseStart || a.Phase == PhaseDrain || j.Started > 0 && j.WaitedMS > j.Spec.within()
}

// Passes reports whether a job need not wait for those before it that stand aside: it replaces, removes or repairs a member. A
// job that only adds members keeps its place, so that such jobs do not pile up.
func (j *Job) Passes() bool {
	s := &j.Spec
	return j.CancelAsked || j.Expired || len(s.Add) == 0 || len(s.Remove)+len(s.Demote)+len(s.Update) > 0 ||
		j.State == StateRunning
}

// onlyAwaits reports whether a job adds members and waits for an operator to start them: what other jobs do takes nothing from
// it.
func (j *Job) onlyAwaits() bool {
	s := &j.Spec
	return j.State == StateRunning && j.Phase == PhaseStart && !j.CancelAsked &&
		len(s.Remove)+len(s.Promote)+len(s.Demote)+len(s.Update) == 0
}

// SaveAfterMS is how much may be added to WaitedMS before it must be written: what a new leader can not know, it counts anew.
func (j *Job) SaveAfterMS() int64 { return j.Spec.within() / 8 }
