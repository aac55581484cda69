package autopilot

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// JobPoll is how often a leader looks whether what a job waits for has come: members do not notify the leader of how far they
// are.
const JobPoll = 200 * time.Millisecond

// StepPatience bounds one attempt at one step. The next View tells what became of it.
const StepPatience = 3 * time.Second

// Runner takes the steps of unfinished jobs at the member that leads.
type Runner struct {
	cluster   Cluster
	addresses *Addresses
	now       func() time.Time
	logger    *slog.Logger
	driver    Driver
	term      consensus.Term // of which everything from before it has been applied here
}

// NewRunner returns the runner of a member.
func NewRunner(cluster Cluster, addresses *Addresses, now func() time.Time, logger *slog.Logger) *Runner {
	return &Runner{cluster: cluster, addresses: addresses, now: now, logger: logger}
}

// Turn does what is to be done now. If a job is left, it returns when to look again; else only changes matter.
func (r *Runner) Turn(ctx context.Context) (pause time.Duration, busy bool) {
	rows := r.cluster.Jobs()
	if !Unfinished(rows) {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, StepPatience)
	defer cancel()
	view, term, err := r.cluster.View(ctx)
	if err != nil {
		return JobPoll, true
	}
	if r.term != term {
		// Once in each term: a job that seems to be unfinished may have been ended by a leader before.
		fresh, now, err := r.cluster.FreshView(ctx)
		if err != nil || now != term {
			return JobPoll, true
		}
		r.term, view, rows = term, fresh, r.cluster.Jobs()
		r.driver.Restart()
	}
	for {
		step := r.driver.Next(r.now(), rows, &view)
		if step.Write == nil {
			return r.take(ctx, &step)
		}
		if rows = r.write(ctx, &step, rows); rows == nil {
			return JobPoll, true
		}
	}
}

// write writes what a step says and returns the rows with it; nil if it is not known whether the job still is what it was.
func (r *Runner) write(ctx context.Context, step *Step, rows []Row) []Row {
	if err := r.cluster.Write(ctx, step.Write); err != nil {
		// A conflict is an operator who cancels, or another leader. Of any other failure the next look tells what it did.
		return nil
	}
	job := &step.Write.Job
	if step.Moved {
		r.logger.Info("membership job", "job", job.ID.String(), "state", string(job.State), "phase", string(job.Phase),
			"message", job.Message)
	}
	for i := range rows {
		if rows[i].ID == job.ID {
			rows[i] = Row{Job: *job, Version: step.Write.Version + 1}
		}
	}
	return rows
}

// take changes the configuration or hands over leadership.
func (r *Runner) take(ctx context.Context, step *Step) (pause time.Duration, busy bool) {
	switch {
	case step.Change != nil:
		if step.Row.Spec.Force != "" {
			r.logger.Warn("peer URLs are changed by force", "job", step.Row.ID.String(), "reason", step.Row.Spec.Force)
		}
		err := r.addresses.Confirm(ctx, step.Change, step.Caution)
		if err == nil {
			err = r.cluster.Change(ctx, step.Change)
		}
		if r.driver.Changed(step, err) {
			return 0, true
		}
	case step.Transfer != consensus.NoMember:
		err := r.cluster.Transfer(ctx, step.Transfer)
		if r.driver.Transferred(step, err); err != nil && !errors.Is(err, context.Canceled) {
			r.logger.Debug("could not hand over leadership for a membership job", "peer", step.Transfer.String(), "err", err)
		}
	}
	return JobPoll, step.Busy
}
