package member

import (
	"cmp"
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

const (
	// maxWaitingJobs bounds the jobs that have not ended.
	maxWaitingJobs = 32
	// keptJobs is how many ended ones are remembered.
	keptJobs = 50
	// maxNewJobBytes leaves room for what is added to a job while it runs.
	maxNewJobBytes = kv.MaxJobBytes / 2
)

// jobBoard is what a member keeps about the jobs of its cluster. The zero value is ready.
type jobBoard struct {
	changed news
	accept  sync.Mutex // one at a time is accepted, so that none is accepted twice
	garbled sync.Once
}

// storedJob is a job and the version of its row.
type storedJob struct {
	membership.Job
	version uint64
}

// clusterAnswer is what a leader says of its cluster.
type clusterAnswer struct {
	View membership.View `json:"view"`
	Term consensus.Term  `json:"term"`
}

// startQuestion asks for a job.
type startQuestion struct {
	ID   membership.JobID `json:"id"`
	Spec membership.Spec  `json:"spec"`
}

// DescribeCluster returns what the leader knows of the cluster, and its term.
func (m *Member) DescribeCluster(ctx context.Context) (membership.View, consensus.Term, error) {
	answer, err := atLeader(ctx, m, methodView, struct{}{}, m.describeHere)
	for _, alarm := range m.ForeignEpochs() { // the leader may not have met them
		if err == nil && !slices.Contains(answer.View.Alarms, alarm) {
			answer.View.Alarms = append(answer.View.Alarms, alarm)
		}
	}
	return answer.View, answer.Term, err
}

func (m *Member) describeHere(ctx context.Context, _ struct{}) (clusterAnswer, error) {
	view, term, err := m.viewInTerm(ctx)
	view.Advice, view.Alarms = m.Advice(), m.ForeignEpochs()
	return clusterAnswer{View: view, Term: term}, err
}

// Plan tells what a job would do. It changes nothing.
func (m *Member) Plan(ctx context.Context, spec *membership.Spec) (membership.Plan, error) {
	if err := validSpec(spec); err != nil {
		return membership.Plan{}, err
	}
	return atLeader(ctx, m, methodPlan, *spec, m.planHere)
}

func (m *Member) planHere(ctx context.Context, spec membership.Spec) (membership.Plan, error) {
	if err := validSpec(&spec); err != nil {
		return membership.Plan{}, err
	}
	view, err := m.heardView(ctx)
	stored := m.storedJobs()
	if err == nil {
		err = expected(&spec, &view, jobsOf(stored))
	}
	if err != nil {
		return membership.Plan{}, err
	}
	plan := membership.Draft(&spec, &view)
	if plan.Done {
		return plan, nil
	}
	plan.Blockers = append(plan.Blockers, spec.Rivals(jobsOf(stored))...)
	plan.Blockers = append(plan.Blockers, m.addressBlockers(ctx, &spec, &view)...)
	for i := range stored {
		if !stored[i].State.Ended() {
			plan.WaitsFor = append(plan.WaitsFor, stored[i].ID)
		}
	}
	if len(plan.Blockers) == 0 {
		plan.Warnings = append(plan.Warnings, queueWarnings(stored, &spec)...)
	}
	return plan, nil
}

// queueWarnings tell what a job of spec would find before it.
func queueWarnings(stored []storedJob, spec *membership.Spec) (warnings []string) {
	if known := knownJob(stored, 0, spec); known != nil {
		return []string{fmt.Sprintf("job %v is this change already: asking for it again only shows that one", known.ID)}
	}
	for i := range stored {
		if !stored[i].State.Ended() {
			warnings = append(warnings, fmt.Sprintf("job %v has not ended: this change waits for it, and is checked again at "+
				"its turn", stored[i].ID))
		}
	}
	return warnings
}

// StartJob makes a job of spec, under an id that the caller drew, or zero. The job that has the id, or else an unfinished
// one that asks for the same, is returned instead if there is one. A job that could not succeed as things are is refused
// with a *membership.BlockedError; other jobs and changes under way are only waited for.
func (m *Member) StartJob(
	ctx context.Context, id membership.JobID, spec *membership.Spec,
) (membership.Job, error) {
	if err := validSpec(spec); err != nil {
		return membership.Job{}, err
	}
	if id == 0 { // here and not at the leader, which may be asked twice
		id = membership.JobID(drawID())
	}
	return atLeader(ctx, m, methodStart, startQuestion{ID: id, Spec: *spec}, m.startHere)
}

func (m *Member) startHere(ctx context.Context, q startQuestion) (membership.Job, error) {
	if err := validSpec(&q.Spec); err != nil {
		return membership.Job{}, err
	}
	m.jobs.accept.Lock()
	defer m.jobs.accept.Unlock()
	view, err := m.heardView(ctx)
	if err != nil {
		return membership.Job{}, err
	}
	stored := m.storedJobs()
	if known := knownJob(stored, q.ID, &q.Spec); known != nil {
		return *known, nil
	}
	job, err := m.draftJob(ctx, &q, &view, stored)
	if err != nil {
		return membership.Job{}, err
	}
	err = m.writeJob(ctx, &job, 0, stored)
	if errors.Is(err, kv.ErrJobExists) { // by a leader before this one, who was asked too
		if known := knownJob(m.storedJobs(), q.ID, &q.Spec); known != nil {
			return *known, nil
		}
	}
	return job, err
}

// draftJob makes the job, or says why it cannot succeed.
func (m *Member) draftJob(
	ctx context.Context, q *startQuestion, view *membership.View, stored []storedJob,
) (membership.Job, error) {
	jobs := jobsOf(stored)
	if why, ok := q.Spec.Admit(jobs, view.ID); !ok {
		return membership.Job{}, &membership.RefusedError{Reason: consensus.ReasonStaleConfig, Config: view.ID, Why: why}
	}
	waiting := 0
	created := view.Now
	for i := range stored {
		if !stored[i].State.Ended() {
			waiting++
		}
		created = max(created, stored[i].Created+1) // the order is right whatever the clocks of the leaders say
	}
	if waiting >= maxWaitingJobs {
		return membership.Job{}, membership.ErrTooManyJobs
	}
	job := membership.Job{
		ID: q.ID, Spec: drawIDs(q.Spec, view), State: membership.StateQueued, Created: created, Updated: created,
	}
	job.NoteNames(view)
	job.Phases = membership.Phases(&job.Spec, view)
	plan := membership.Rehearse(&job.Spec, jobs, view)
	if !plan.Done {
		plan.Blockers = append(plan.Blockers, m.addressBlockers(ctx, &job.Spec, view)...)
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

// CancelJob asks for the end of a job: one that has not begun ends at once, a running one when the leader has undone
// what can be undone. A job that has ended stays as it is.
func (m *Member) CancelJob(ctx context.Context, id membership.JobID) (membership.Job, error) {
	return atLeader(ctx, m, methodCancel, id, m.cancelHere)
}

func (m *Member) cancelHere(ctx context.Context, id membership.JobID) (membership.Job, error) {
	for {
		view, err := m.freshView(ctx)
		if err != nil {
			return membership.Job{}, err
		}
		stored := m.storedJobs()
		at := slices.IndexFunc(stored, func(j storedJob) bool { return j.ID == id })
		if at < 0 {
			return membership.Job{}, membership.ErrJobNotFound
		}
		job := stored[at].Job
		switch {
		case job.State.Ended() || job.CancelAsked:
			return job, nil
		case job.State == membership.StateQueued:
			job.State, job.Message, job.Ended = membership.StateCancelled, "it had not begun", view.Now
		default:
			job.CancelAsked = true
		}
		job.Updated = view.Now
		if err := m.writeJob(ctx, &job, stored[at].version, stored); !errors.Is(err, kv.ErrJobConflict) {
			return job, err
		}
	}
}

// Jobs returns the jobs that the cluster remembers as they are applied here, oldest first.
func (m *Member) Jobs() []membership.Job {
	return jobsOf(m.storedJobs())
}

// JobsChanged is closed when the next write of a job has been applied here.
func (m *Member) JobsChanged() <-chan struct{} { return m.jobs.changed.next() }

// noteJobs wakes those who wait for JobsChanged, once entries are applied.
func (m *Member) noteJobs(entries []consensus.Entry) {
	for i := range entries {
		if entries[i].Kind == consensus.EntryCommand && kv.IsJob(entries[i].Payload) {
			m.jobs.changed.tell()
			return
		}
	}
}

func (m *Member) storedJobs() []storedJob {
	machine, release := m.Machine()
	rows := machine.Jobs()
	release()
	stored := make([]storedJob, 0, len(rows))
	for i := range rows {
		job, err := membership.DecodeJob(rows[i].Body)
		if err == nil && job.ID != membership.JobID(rows[i].ID) {
			err = fmt.Errorf("it says that it is job %v", job.ID)
		}
		if err != nil {
			m.jobs.garbled.Do(func() {
				m.logger.Error("cannot read a membership job", "job", membership.JobID(rows[i].ID).String(), "err", err)
			})
			continue
		}
		stored = append(stored, storedJob{Job: job, version: rows[i].Version})
	}
	slices.SortFunc(stored, func(a, b storedJob) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	return stored
}

func jobsOf(stored []storedJob) []membership.Job {
	jobs := make([]membership.Job, len(stored))
	for i := range stored {
		jobs[i] = stored[i].Job
	}
	return jobs
}

// knownJob returns the job with an id, else an unfinished one that asks for the same.
func knownJob(stored []storedJob, id membership.JobID, spec *membership.Spec) *membership.Job {
	for i := range stored {
		if stored[i].ID == id {
			return &stored[i].Job
		}
	}
	for i := range stored {
		if !stored[i].State.Ended() && !stored[i].CancelAsked && stored[i].Spec.Same(spec) {
			return &stored[i].Job
		}
	}
	return nil
}

// writeJob replaces the row of a job if its version is still the given one; zero creates it. Errors of package kv say
// that nothing was written. Once the job has ended, the write forgets the oldest of the ended ones.
func (m *Member) writeJob(ctx context.Context, job *membership.Job, version uint64, stored []storedJob) error {
	op := &kv.JobOp{ID: uint64(job.ID), Version: version, Body: job.Encode()}
	if job.State.Ended() {
		op.Prune = outdated(stored, job.ID)
	}
	result, err := m.Propose(ctx, &kv.Command{Job: op})
	if err != nil {
		return err
	}
	return result.Err
}

// outdated lists the ended jobs, oldest first, that are too many once one more has ended.
func outdated(stored []storedJob, ends membership.JobID) []uint64 {
	var ended []uint64
	for i := range stored {
		if stored[i].State.Ended() && stored[i].ID != ends {
			ended = append(ended, uint64(stored[i].ID))
		}
	}
	return ended[:max(0, len(ended)+1-keptJobs)]
}

// freshView is the View of a leader whose state shows everything that was acknowledged before the call.
func (m *Member) freshView(ctx context.Context) (membership.View, error) {
	if m.Leader() != m.ID() {
		return membership.View{}, ErrNotLeader
	}
	if err := m.ReadIndex(ctx); err != nil {
		return membership.View{}, err
	}
	return m.View(ctx)
}

// heardView is a freshView of a leader that has had the time to hear from every member that is up: before that, a change
// might seem to cost the quorum.
func (m *Member) heardView(ctx context.Context) (membership.View, error) {
	patience := time.After(m.electionTimeout())
	for {
		view, err := m.freshView(ctx)
		inDoubt := func(v membership.MemberView) bool {
			return !v.Active && v.SilentMS < m.electionTimeout().Milliseconds() ||
				v.Active && !v.CaughtUp && view.Config.IsVoter(v.ID)
		}
		if err != nil || !slices.ContainsFunc(view.Members, inDoubt) {
			return view, err
		}
		select {
		case <-m.options.tickAfter():
		case <-patience:
			return view, nil
		case <-ctx.Done():
			return view, ctx.Err()
		case <-m.stopping.Done():
			return view, ErrStopped
		}
	}
}

func validSpec(spec *membership.Spec) error {
	if err := spec.Validate(); err != nil {
		return &membership.SpecError{Text: err.Error()}
	}
	return nil
}

// expected refuses a Spec that was made for another configuration, and tells which jobs have changed it.
func expected(spec *membership.Spec, view *membership.View, jobs []membership.Job) error {
	if spec.Stale(view.ID) {
		why := membership.Since(jobs, spec.Expected)
		return &membership.RefusedError{Reason: consensus.ReasonStaleConfig, Config: view.ID, Why: why}
	}
	return nil
}

// drawIDs names the newcomers. An id is random, so that a member that is removed and added again under the same URLs is
// another member.
func drawIDs(spec membership.Spec, view *membership.View) membership.Spec {
	spec.Add = slices.Clone(spec.Add)
	for i := range spec.Add {
		for n := &spec.Add[i]; n.ID == consensus.NoMember; {
			id := consensus.MemberID(drawID())
			if !view.Config.Contains(id) && !slices.Contains(view.Tombstones, id) {
				n.ID = id
			}
		}
	}
	return spec
}

// drawID draws a number that is not zero and stays positive in signed tools.
func drawID() uint64 {
	var random [8]byte
	for {
		_, _ = rand.Read(random[:]) // it cannot fail: the program ends instead
		if id := binary.BigEndian.Uint64(random[:]) >> 1; id != 0 {
			return id
		}
	}
}
