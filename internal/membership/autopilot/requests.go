package autopilot

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

// RequestOptions say how a leader answers.
type RequestOptions struct {
	// ElectionTimeout is after which silence a member is taken for gone; Poll is how often to look again.
	ElectionTimeout, Poll time.Duration
	Draw                  func() uint64 // draws an id; nil: DrawID
	// Admit refuses a process that asks to be added of itself; nil: none is refused.
	Admit  func(ctx context.Context, q *JoinQuestion) error
	Accept sync.Locker // one job at a time is accepted; nil: a mutex of its own
}

// Requests answers what people, and processes that join, ask of the leader. It is of use at any member, and fails at those that
// do not lead.
type Requests struct {
	options   RequestOptions
	cluster   Cluster
	addresses *Addresses
}

// NewRequests returns those of a member.
func NewRequests(cluster Cluster, addresses *Addresses, options RequestOptions) *Requests {
	if options.Draw == nil {
		options.Draw = DrawID
	}
	if options.Admit == nil {
		options.Admit = func(context.Context, *JoinQuestion) error { return nil }
	}
	if options.Accept == nil {
		options.Accept = &sync.Mutex{}
	}
	return &Requests{options: options, cluster: cluster, addresses: addresses}
}

// Plan tells what a job would do. It changes nothing.
func (r *Requests) Plan(ctx context.Context, spec *membership.Spec) (membership.Plan, error) {
	if err := Valid(spec); err != nil {
		return membership.Plan{}, err
	}
	view, err := r.heardView(ctx)
	if err != nil {
		return membership.Plan{}, err
	}
	rows := r.cluster.Jobs()
	jobs := Jobs(rows)
	if spec.Stale(view.ID) { // it was made for another configuration
		return membership.Plan{}, &membership.RefusedError{
			Reason: consensus.ReasonStaleConfig, Config: view.ID, Why: membership.Since(jobs, spec.Expected),
		}
	}
	plan := membership.Draft(spec, &view)
	if plan.Done {
		return plan, nil
	}
	plan.Blockers = append(plan.Blockers, membership.Rivals(spec, jobs, &view)...)
	plan.Blockers = append(plan.Blockers, r.addresses.blockers(ctx, spec, &view)...)
	plan.Blockers = append(plan.Blockers, membership.Unproved(spec, &view)...)
	for i := range rows {
		if !rows[i].State.Ended() {
			plan.WaitsFor = append(plan.WaitsFor, rows[i].ID)
		}
	}
	if len(plan.Blockers) == 0 {
		plan.Warnings = append(plan.Warnings, queueWarnings(rows, spec)...)
	}
	return plan, nil
}

// queueWarnings tell what a job of spec would find before it.
func queueWarnings(rows []Row, spec *membership.Spec) (warnings []string) {
	if same := known(rows, 0, spec); same != nil {
		return []string{fmt.Sprintf("job %v is this change already: asking for it again only shows that one", same.ID)}
	}
	for i := range rows {
		if !rows[i].State.Ended() {
			warnings = append(warnings, fmt.Sprintf("job %v has not ended: this change waits for it, and is checked again at "+
				"its turn", rows[i].ID))
		}
	}
	return warnings
}

// Start makes a job of spec, under an id that the caller drew. The job that has the id, or else an unfinished one that asks for
// the same, is returned instead if there is one. A job that could not succeed as things are is refused with a
// *membership.BlockedError; other jobs and changes under way are only waited for.
func (r *Requests) Start(ctx context.Context, id membership.JobID, spec *membership.Spec) (membership.Job, error) {
	if err := Valid(spec); err != nil {
		return membership.Job{}, err
	}
	r.options.Accept.Lock() // so that none is accepted twice
	defer r.options.Accept.Unlock()
	view, err := r.heardView(ctx)
	if err != nil {
		return membership.Job{}, err
	}
	rows := r.cluster.Jobs()
	if same := known(rows, id, spec); same != nil {
		return *same, nil
	}
	job, err := r.draft(ctx, id, *spec, &view, rows)
	if err != nil {
		return membership.Job{}, err
	}
	err = r.cluster.Write(ctx, writeOf(&job, 0, rows))
	if errors.Is(err, kv.ErrJobExists) { // by a leader before this one, who was asked too
		if same := known(r.cluster.Jobs(), id, spec); same != nil {
			return *same, nil
		}
	}
	return job, err
}

// draft makes the job, or says why it cannot succeed.
func (r *Requests) draft(
	ctx context.Context, id membership.JobID, spec membership.Spec, view *membership.View, rows []Row,
) (membership.Job, error) {
	jobs := Jobs(rows)
	byCare := membership.ByCare(&membership.Job{ID: id, Spec: spec})
	if why, ok := spec.Admit(jobs, view.ID); !ok {
		return membership.Job{}, &membership.RefusedError{Reason: consensus.ReasonStaleConfig, Config: view.ID, Why: why}
	}
	waiting := 0
	created := view.Now
	for i := range rows {
		if !rows[i].State.Ended() {
			waiting++
		}
		created = max(created, rows[i].Created+1) // the order is right whatever the clocks of the leaders say
	}
	if waiting >= maxWaitingJobs {
		return membership.Job{}, membership.ErrTooManyJobs
	}
	job := membership.Job{
		ID: id, Spec: r.drawIDs(spec, view), Care: byCare, State: membership.StateQueued, Created: created, Updated: created,
	}
	job.NoteNames(view)
	job.Phases = membership.Phases(&job.Spec, view)
	plan := membership.Rehearse(&job.Spec, jobs, view)
	if !plan.Done {
		plan.Blockers = append(plan.Blockers, r.addresses.blockers(ctx, &job.Spec, view)...)
		plan.Blockers = append(plan.Blockers, membership.Unproved(&job.Spec, view)...)
	}
	job.Undo = plan.Undo
	switch {
	case len(plan.Blockers) > 0:
		return membership.Job{}, &membership.BlockedError{Plan: plan}
	case plan.Done && waiting == 0 && view.Settled:
		job.State, job.Message, job.Ended = membership.StateDone, "nothing to do", created
		job.Config, job.Final = view.ID, view.ID
	}
	if len(job.Encode()) > maxNewJobBytes {
		return membership.Job{}, &membership.SpecError{Text: "the change is too large for one job: make several of it"}
	}
	return job, nil
}

// Cancel asks for the end of a job: one that has not begun ends at once, a running one when the leader has undone what can be
// undone. A job that has ended stays as it is.
func (r *Requests) Cancel(ctx context.Context, id membership.JobID) (membership.Job, error) {
	for {
		view, _, err := r.cluster.FreshView(ctx)
		if err != nil {
			return membership.Job{}, err
		}
		rows := r.cluster.Jobs()
		at := slices.IndexFunc(rows, func(row Row) bool { return row.ID == id })
		if at < 0 {
			return membership.Job{}, membership.ErrJobNotFound
		}
		job := rows[at].Job
		switch {
		case job.State.Ended() || job.CancelAsked:
			return job, nil
		case job.State == membership.StateQueued:
			job.State, job.Message, job.Ended = membership.StateCancelled, "it had not begun", view.Now
		default:
			job.CancelAsked = true
		}
		job.Updated = view.Now
		if err := r.cluster.Write(ctx, writeOf(&job, rows[at].Version, rows)); !errors.Is(err, kv.ErrJobConflict) {
			return job, err
		}
	}
}

// heardView is a fresh View of a leader that has had the time to hear from every member that is up: before that, a change might
// seem to cost the quorum.
func (r *Requests) heardView(ctx context.Context) (membership.View, error) {
	for waited := time.Duration(0); ; waited += r.options.Poll {
		view, _, err := r.cluster.FreshView(ctx)
		inDoubt := func(m membership.MemberView) bool {
			return !m.Active && m.SilentMS < r.options.ElectionTimeout.Milliseconds() ||
				m.Active && !m.CaughtUp && view.Config.IsVoter(m.ID)
		}
		if err != nil || waited >= r.options.ElectionTimeout || !slices.ContainsFunc(view.Members, inDoubt) {
			return view, err
		}
		if err := r.cluster.Sleep(ctx, r.options.Poll); err != nil {
			return view, err
		}
	}
}

// Valid refuses a Spec that makes no sense in any cluster.
func Valid(spec *membership.Spec) error {
	if err := spec.Validate(); err != nil {
		return &membership.SpecError{Text: err.Error()}
	}
	return nil
}

// drawIDs names the newcomers. An id is random, so that a member that is removed and added again under the same URLs is
// another member.
func (r *Requests) drawIDs(spec membership.Spec, view *membership.View) membership.Spec {
	spec.Add = slices.Clone(spec.Add)
	for i := range spec.Add {
		for n := &spec.Add[i]; n.ID == consensus.NoMember; {
			id := consensus.MemberID(r.options.Draw())
			if !view.Config.Contains(id) && !slices.Contains(view.Tombstones, id) {
				n.ID = id
			}
		}
	}
	return spec
}

// DrawID draws a number that is not zero and stays positive in signed tools.
func DrawID() uint64 {
	var random [8]byte
	for {
		_, _ = rand.Read(random[:]) // it cannot fail: the program ends instead
		if id := binary.BigEndian.Uint64(random[:]) >> 1; id != 0 {
			return id
		}
	}
}
