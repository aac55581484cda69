package membership

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Admit makes s expect what it is due to expect, beside jobs, while the configuration called id is in force. If the cluster is
// not the one that s was planned for, it says why and reports false: s must be planned again.
func (s *Spec) Admit(jobs []Job, id consensus.ConfigID) (why string, ok bool) {
	if unseen := s.Unseen(jobs); len(unseen) > 0 {
		return fmt.Sprintf("job %v (%s) was asked for since the plan was made", unseen[0].ID, unseen[0].Title()), false
	}
	s.Expected = s.Due(jobs, id)
	if s.Stale(id) {
		return Since(jobs, s.Expected), false
	}
	return "", true
}

// Rehearse is the plan of a job that would be put behind jobs: they and what is under way are waited for, but they must not
// contradict it.
func Rehearse(s *Spec, jobs []Job, v *View) Plan {
	calm := v.calmed()
	plan := Draft(s, &calm)
	if !plan.Done {
		plan.Blockers = append(plan.Blockers, Rivals(s, jobs, v)...)
	}
	return plan
}

// calmed is the view as it will be once the change that is under way is done: a job waits for that.
func (v *View) calmed() View {
	calm := *v
	calm.Config, calm.Settled, calm.Undecided, calm.TermStarted = v.Config.Settle(), true, false, true
	calm.Members = slices.DeleteFunc(slices.Clone(v.Members), func(m MemberView) bool { return !calm.Config.Contains(m.ID) })
	return calm
}

// Note writes down what an action says of the job before it is taken: that it runs, in which phase, and how it ended.
func (j *Job) Note(a *Action, v *View) {
	if j.State == StateQueued {
		j.State, j.Started, j.Config = StateRunning, v.Now, v.ID
	}
	if a.Phase != "" && a.Phase != j.Phase {
		j.Phase = a.Phase
		j.noteBegun(v.Now)
	}
	j.Expired = j.Expired || a.Expired
	if a.End != "" {
		j.State, j.Ended, j.Final = a.End, v.Now, v.ID
	}
}

// noteBegun notes when the present phase began, unless it did before.
func (j *Job) noteBegun(now int64) {
	if !slices.ContainsFunc(j.Begun, func(b PhaseTime) bool { return b.Phase == j.Phase }) {
		j.Begun = append(slices.Clip(j.Begun), PhaseTime{j.Phase, now}) // the list is shared with the row as it was
	}
}
