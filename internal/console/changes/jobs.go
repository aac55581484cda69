package changes

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/prose"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/wording"
	"github.com/quorate/quorate/internal/membership"
)

// jobView is a job as the pages show it.
type jobView struct {
	ID, Kind, Change, Protocol string
	State, Class               string // a word, and the class of its tag
	Message                    []prose.Piece
	Took                       string // for how long it runs, or ran; empty: it has not begun
	Before                     uint32 // jobs before this one
	EndedMs                    int64
	Steps                      []stepView
	Timed                      bool // the cluster tells when phases began
	Undo, UndoNote             string
	Ended                      bool
}

// stepView is a phase of a job.
type stepView struct {
	progress.Step
	Past, Now bool
	Took      string // how long it took, or another word for that; of one that has not begun, whether it will
	Moves     []moveView
	About     wording.Phase
}

// moveView is how far a member is.
type moveView struct {
	progress.Move
	Percent int
	Left    string
}

// classes of the tags of states.
var classes = map[membership.State]string{
	membership.StateDone: "good", membership.StateFailed: "bad", membership.StateCancelled: "warn",
	membership.StateRunning: "busy",
}

// viewOf is a job as it is now.
func (c *changes) viewOf(r *page.Request, k *known, job *quoratepb.Job) jobView {
	steps, took := c.tracks.observe(r.Now, k.cluster, job)
	v := jobView{ID: observed.Hex(job.Id), Kind: progress.Kind(job), Change: wording.Change(job.Spec, k.names.Of),
		Protocol: job.GetSpec().GetProtocol(), State: job.State, Class: classes[membership.State(job.State)],
		Message: prose.Of(job.Message), Before: job.QueuePosition, EndedMs: job.EndedMs, Ended: wording.Ended(job)}
	if job.CancelAsked && !v.Ended {
		v.State, v.Class = "is being cancelled", "warn"
	}
	v.Took = tookOf(job, took)
	if membership.State(job.State) == membership.StateDone {
		v.Undo = r.Asking(wording.Undo(job.Undo))
		v.UndoNote = wording.UndoNote(v.Undo)
	}
	for i := range steps {
		v.Steps = append(v.Steps, stepOf(&steps[i], job))
		v.Timed = v.Timed || steps[i].BeganMs > 0
	}
	return v
}

// tookOf is for how long a job runs, in whole seconds, or how long it took, as exactly as is known; empty: it has not begun.
func tookOf(job *quoratepb.Job, took time.Duration) string {
	switch {
	case job.GetStartedMs() == 0:
		return ""
	case wording.Ended(job):
		return page.Duration(took.Round(time.Millisecond))
	}
	return page.Seconds(took)
}

func stepOf(s *progress.Step, job *quoratepb.Job) stepView {
	v := stepView{Step: *s, Past: s.State == progress.Passed, Now: s.State == progress.Present}
	undone := job.Phase != "" && !slices.Contains(job.Phases, job.Phase)
	switch {
	case s.State == progress.Coming && undone: // nothing tells how far the job was
		v.Took = "not seen"
	case s.State == progress.Coming && wording.Ended(job):
		v.Took = "not reached"
	case s.State == progress.Coming:
		v.Took = "to come"
	case v.Past && !s.Seen:
		v.Took = "passed" // before anybody looked, too fast to be seen, or because it was not needed
	case v.Past && s.Took <= 0:
		v.Took = "done"
	case v.Past && s.BeganMs > 0: // as the cluster tells, to the millisecond
		v.Took = "done in " + page.Duration(s.Took)
	case v.Past: // as the console saw it
		v.Took = "done in " + page.Duration(s.Took.Round(100*time.Millisecond))
	}
	if at := slices.IndexFunc(wording.Phases, func(p wording.Phase) bool { return p.Name == s.Phase }); at >= 0 {
		v.About = wording.Phases[at]
	}
	for _, m := range s.Move {
		move := moveView{Move: m, Percent: int(100 * min(max(m.Fraction, 0), 1))}
		if m.Left >= 0 {
			move.Left = page.Seconds(m.Left)
		}
		v.Moves = append(v.Moves, move)
	}
	return v
}

// jobsView is a list of jobs.
type jobsView struct {
	Jobs  []jobView
	More  int // that are not shown
	Still string
	Admin bool
}

// open lists the jobs that run or wait.
func (c *changes) open(ctx context.Context, r *page.Request) (any, error) {
	k, err := look(ctx, r)
	if err != nil {
		return nil, err
	}
	v := jobsView{Admin: r.Admin}
	for _, job := range k.jobs {
		if !wording.Ended(job) {
			v.Jobs = append(v.Jobs, c.viewOf(r, k, job))
		}
	}
	if len(v.Jobs) > 0 {
		v.Still = k.still
	}
	return v, nil
}

// mostEnded is how many jobs that have ended are shown, unless all are asked for.
const mostEnded = 12

// ended lists the jobs that have ended, the last one first. They know the names of the members that they changed.
func ended(ctx context.Context, r *page.Request) (any, error) {
	answer, err := quoratepb.NewMembershipClient(r.Conn).ListJobs(ctx, &quoratepb.ListJobsRequest{})
	if err != nil {
		return nil, err
	}
	k := &known{jobs: answer.GetJobs(), names: wording.Names{}}
	k.names.NoteJobs(k.jobs...)
	all := slices.DeleteFunc(slices.Clone(k.jobs), func(job *quoratepb.Job) bool { return !wording.Ended(job) })
	slices.SortStableFunc(all, func(a, b *quoratepb.Job) int { return cmp.Compare(b.EndedMs, a.EndedMs) })
	v := jobsView{}
	if len(all) > mostEnded && !r.Query.Has("all") {
		v.More = len(all) - mostEnded
		all = all[:mostEnded]
	}
	for _, job := range all {
		v.Jobs = append(v.Jobs, endedOf(r, k, job))
	}
	return v, nil
}

// endedOf is a job that has ended, without its phases: it is not followed.
func endedOf(r *page.Request, k *known, job *quoratepb.Job) jobView {
	v := jobView{ID: observed.Hex(job.Id), Kind: progress.Kind(job), Change: wording.Change(job.Spec, k.names.Of),
		State: job.State, Class: classes[membership.State(job.State)], Message: prose.Of(job.Message), EndedMs: job.EndedMs,
		Ended: true}
	v.Took = tookOf(job, time.Duration(max(job.EndedMs-job.StartedMs, 0))*time.Millisecond)
	if membership.State(job.State) == membership.StateDone {
		v.Undo = r.Asking(wording.Undo(job.Undo))
	}
	return v
}

// begin lists the changes that can be planned.
func begin(_ context.Context, r *page.Request) (any, error) {
	return struct {
		Verbs []wording.Verb
		Admin bool
	}{slices.DeleteFunc(slices.Clone(wording.Verbs), func(v wording.Verb) bool { return v.Name == "replace" }), r.Admin}, nil
}
