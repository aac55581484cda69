package member

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/autopilot"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/membership"
)

// jobTable is what a member keeps about the jobs of its cluster. The zero value is ready.
type jobTable struct {
	changed news
	garbled sync.Once
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
	if err := autopilot.Valid(spec); err != nil {
		return membership.Plan{}, err
	}
	return atLeader(ctx, m, methodPlan, *spec, m.planHere)
}

func (m *Member) planHere(ctx context.Context, spec membership.Spec) (membership.Plan, error) {
	return m.requests.Plan(ctx, &spec)
}

// StartJob makes a job of spec, under an id that the caller drew, or zero: see autopilot.Requests.
func (m *Member) StartJob(
	ctx context.Context, id membership.JobID, spec *membership.Spec,
) (membership.Job, error) {
	if err := autopilot.Valid(spec); err != nil {
		return membership.Job{}, err
	}
	if id == 0 { // here and not at the leader, which may be asked twice
		id = membership.JobID(autopilot.DrawID())
	}
	return atLeader(ctx, m, methodStart, startQuestion{ID: id, Spec: *spec}, m.startHere)
}

func (m *Member) startHere(ctx context.Context, q startQuestion) (membership.Job, error) {
	return m.requests.Start(ctx, q.ID, &q.Spec)
}

// CancelJob asks for the end of a job: see autopilot.Requests.
func (m *Member) CancelJob(ctx context.Context, id membership.JobID) (membership.Job, error) {
	return atLeader(ctx, m, methodCancel, id, m.requests.Cancel)
}

// Jobs returns the jobs that the cluster remembers as they are applied here, oldest first.
func (m *Member) Jobs() []membership.Job {
	return autopilot.Jobs(m.jobRows())
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

func (m *Member) jobRows() []autopilot.Row {
	machine, release := m.Machine()
	stored := machine.Jobs()
	release()
	rows := make([]autopilot.Row, 0, len(stored))
	for i := range stored {
		job, err := membership.DecodeJob(stored[i].Body)
		if err == nil && job.ID != membership.JobID(stored[i].ID) {
			err = fmt.Errorf("it says that it is job %v", job.ID)
		}
		if err != nil {
			m.jobs.garbled.Do(func() {
				m.logger.Error("cannot read a membership job", "job", membership.JobID(stored[i].ID).String(), "err", err)
			})
			continue
		}
		rows = append(rows, autopilot.Row{Job: job, Version: stored[i].Version})
	}
	slices.SortFunc(rows, func(a, b autopilot.Row) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	return rows
}
