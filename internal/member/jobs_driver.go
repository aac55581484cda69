package member

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

const (
	// jobPoll is how often the driver looks whether what a job waits for has come: how far members are makes no news.
	jobPoll = 200 * time.Millisecond
	// jobPatience bounds one attempt at one step. What became of it, the next View tells.
	jobPatience = 3 * time.Second
	// jobWriteInterval is how far apart writes are that only tell people what is going on.
	jobWriteInterval = time.Second
	// maxMessageBytes is far less than what is left beside the largest new job, even if JSON escapes every byte.
	maxMessageBytes = 4 << 10
)

// jobDriver takes the steps of unfinished jobs while this member leads: see turn. It keeps nothing that matters: whoever
// leads next goes on from the configuration and the row of the job.
type jobDriver struct {
	m         *Member
	term      consensus.Term // of which everything from before it has been applied here
	messageAt time.Time
	obstacle  string           // why the last attempt at a change or a hand-over failed
	of        membership.JobID // whose attempt that was
}

// driveJobs is the goroutine that does it.
func (m *Member) driveJobs() error {
	d := jobDriver{m: m}
	timer := time.NewTimer(jobPoll)
	defer timer.Stop()
	for {
		jobs, config, leader := m.JobsChanged(), m.ConfigChanged(), m.LeaderChanged()
		var poll <-chan time.Time
		if pause, busy := d.step(); busy {
			timer.Reset(pause)
			poll = timer.C
		}
		select {
		case <-jobs:
		case <-config:
		case <-leader:
		case <-poll:
		case <-m.stopping.Done():
			return nil
		}
	}
}

// step does what is to be done now. If a job is left, it returns when to look again; else only news matter.
func (d *jobDriver) step() (pause time.Duration, busy bool) {
	m := d.m
	if m.Leader() != m.ID() {
		return 0, false
	}
	if !slices.ContainsFunc(m.storedJobs(), func(job storedJob) bool { return !job.State.Ended() }) {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(m.stopping, jobPatience)
	defer cancel()
	if !d.catchUp(ctx) {
		return jobPoll, true
	}
	return d.turn(ctx)
}

// turn acts for the job whose turn it is: the first one that is not ended, or, while that stands aside, the next one that need
// not wait for it.
func (d *jobDriver) turn(ctx context.Context) (pause time.Duration, busy bool) {
	stored := d.m.storedJobs()
	view, err := d.m.View(ctx)
	if err != nil {
		return jobPoll, true
	}
	waits := false
	for i := range stored {
		job := &stored[i]
		if job.State.Ended() || (waits && !job.Passes()) {
			continue
		}
		busy = true
		if job.State == membership.StateQueued {
			job.Spec.Expected = job.Spec.Due(before(stored, job), view.ID)
		}
		action := membership.Next(&job.Job, &view)
		if !d.record(ctx, job, &action, &view, stored) {
			return jobPoll, true
		}
		if waits = job.Job.StandsAside(&action, &view); !waits {
			return d.act(ctx, job, &action, &view), true
		}
	}
	return jobPoll, busy
}

// act takes the step that is due for a job, and returns when to look again.
func (d *jobDriver) act(
	ctx context.Context, job *storedJob, action *membership.Action, view *membership.View,
) time.Duration {
	m := d.m
	switch {
	case action.End != "":
		d.obstacle = ""
		return 0
	case action.Change != nil:
		return d.change(ctx, job, action, view)
	case action.Transfer != consensus.NoMember:
		if err := m.TransferLeadership(ctx, action.Transfer); err != nil && m.stopping.Err() == nil {
			d.of, d.obstacle = job.ID, strings.TrimPrefix(err.Error(), "member: ")
			m.logger.Debug("could not hand over leadership for a membership job", "peer", action.Transfer.String(), "err", err)
		}
	}
	return jobPoll
}

// catchUp makes sure, once in each term, that the state shows what was written under the leaders before: a job that
// seems to be unfinished may have been ended by one of them.
func (d *jobDriver) catchUp(ctx context.Context) bool {
	term := d.m.Term()
	if d.term == term {
		return true
	}
	if err := d.m.ReadIndex(ctx); err != nil || d.m.Leader() != d.m.ID() || d.m.Term() != term {
		return false
	}
	d.term, d.obstacle = term, ""
	return true
}

// before lists the jobs that were accepted before job.
func before(stored []storedJob, job *storedJob) []membership.Job {
	at := slices.IndexFunc(stored, func(s storedJob) bool { return s.ID == job.ID })
	return jobsOf(stored[:at])
}

// record writes how far the job is, before the action is taken: that it runs, in which phase it is, how it ended, and, at
// times, what is going on. It reports false if the action must not be taken, because it is not known whether the job still
// is what it was.
func (d *jobDriver) record(
	ctx context.Context, job *storedJob, action *membership.Action, view *membership.View, stored []storedJob,
) bool {
	next := job.Job
	next.Note(action, view)
	next.Message = d.words(job.ID, action, next.Phase != job.Phase)
	moved := next.State != job.State || next.Phase != job.Phase || next.Expired != job.Expired
	now := d.m.options.Clock.Now()
	if !moved && (sameClass(next.Message, job.Message) || now.Sub(d.messageAt) < jobWriteInterval) {
		return true
	}
	d.messageAt = now
	next.Updated = view.Now
	if err := d.m.writeJob(ctx, &next, job.version, stored); err != nil {
		// A conflict is somebody who cancels, or another leader. Of any other failure the next look tells what it did.
		return false
	}
	job.Job = next
	job.version++
	if moved {
		d.m.logger.Info("membership job", "job", next.ID.String(), "state", string(next.State),
			"phase", string(next.Phase), "message", next.Message)
	}
	return true
}

// words say what is going on. An attempt that failed before is told for as long as the same is attempted.
func (d *jobDriver) words(id membership.JobID, action *membership.Action, turned bool) string {
	if d.of != id {
		return bounded(action.Message)
	}
	if turned || (action.Change == nil && action.Transfer == consensus.NoMember) {
		d.obstacle = ""
	}
	if d.obstacle == "" {
		return bounded(action.Message)
	}
	return bounded(action.Message + "; the last attempt failed: " + d.obstacle)
}

// bounded cuts what would make the row of the job too large to be written: the job would stand still for ever.
func bounded(message string) string {
	if len(message) <= maxMessageBytes {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessageBytes], "") + " …"
}

// sameClass reports whether two messages say the same but for their numbers, which the View shows better. A command is to be
// copied: of addresses in it every digit counts.
func sameClass(a, b string) bool {
	return withoutNumbers(a) == withoutNumbers(b) && commandIn(a) == commandIn(b)
}

// commandIn returns the command that a message quotes, empty if there is none.
func commandIn(message string) string {
	_, rest, _ := strings.Cut(message, "`")
	command, _, _ := strings.Cut(rest, "`")
	return command
}

func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' || r == ',' {
			return -1
		}
		return r
	}, text)
}

// change proposes a change of the configuration and returns when to look again.
func (d *jobDriver) change(
	ctx context.Context, job *storedJob, action *membership.Action, view *membership.View,
) time.Duration {
	m := d.m
	request := *action.Change
	if request.Expected == (consensus.ConfigID{}) {
		request.Expected = view.ID // of two leaders at most one gets its way
	}
	demand := membership.Cautious
	if job.Spec.Force != "" {
		demand = membership.Forced
		m.logger.Warn("peer URLs are changed by force", "job", job.ID.String(), "reason", job.Spec.Force)
	}
	err := m.confirmAddresses(ctx, &request, demand)
	if err == nil {
		err = m.proposeChange(ctx, &request)
	}
	var refused *membership.RefusedError
	var address *membership.AddressError
	switch {
	case errors.As(err, &address):
		d.of, d.obstacle = job.ID, address.Text
		return jobPoll
	case err == nil:
		d.obstacle = ""
		return 0
	case !errors.As(err, &refused):
		// It may or may not have happened, or it cannot commit yet: the next View tells.
		return jobPoll
	case asksAgain(refused.Reason) || request.Abort:
		return jobPoll
	case passes(refused.Reason):
		d.of, d.obstacle = job.ID, refused.Reason.String()
		return jobPoll
	}
	if now, err := m.View(ctx); err != nil || now.ID != view.ID {
		return jobPoll // it was asked for a configuration of the past
	}
	end := membership.Action{
		Phase: action.Phase, End: membership.StateFailed,
		Message: bounded(action.Message) + " was refused: " + refused.Reason.String(),
	}
	stored := m.storedJobs()
	d.record(ctx, job, &end, view, stored)
	return 0
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
