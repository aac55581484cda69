package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
)

// Tracker follows one job.
type Tracker struct {
	job     *quoratepb.Job
	cluster *quoratepb.Cluster
	seen    time.Time            // when the job's present state was
	late    time.Duration        // between the job's last word and the first time that we saw it
	phases  map[string]*interval // those that were seen to begin or to be under way
	current string
	lags    map[uint64]lagStart // of members that catch up
	lost    string              // why nothing is heard of the cluster; empty if something is
}

// interval is when a phase was under way. A beginning that was not seen is the zero time.
type interval struct{ began, ended time.Time }

// lagStart is how far a member was behind when this was first seen in a phase, so that the rest can be foreseen.
type lagStart struct {
	phase string
	lag   uint64
	at    time.Time
}

// New returns a Tracker of a job as it is now.
func New(now time.Time, job *quoratepb.Job) *Tracker {
	t := &Tracker{phases: map[string]*interval{}, lags: map[uint64]lagStart{}}
	t.Observe(now, nil, job)
	return t
}

// Job returns the last state that was observed.
func (t *Tracker) Job() *quoratepb.Job { return t.job }

// Observe takes in a new state of the cluster, of the job, or of both. It reports whether the job entered another phase
// or state.
func (t *Tracker) Observe(now time.Time, cluster *quoratepb.Cluster, job *quoratepb.Job) bool {
	t.lost = ""
	if cluster != nil {
		t.cluster = cluster
	}
	turned := false
	if job != nil {
		turned = t.job == nil || t.job.State != job.State || t.job.Phase != job.Phase
		first := t.job == nil
		switch {
		case first:
			t.seen, t.late = now, max(now.Sub(time.UnixMilli(job.UpdatedMs)), 0)
		case job.UpdatedMs != t.job.UpdatedMs:
			t.seen, t.late = now, 0
		}
		t.job = job
		t.enter(now, first)
	}
	t.rememberLags(now)
	return turned
}

// Lose notes that nothing is heard of the cluster at the moment, and why.
func (t *Tracker) Lose(reason string) { t.lost = reason }

// enter closes the phase before the present one and opens the present one.
func (t *Tracker) enter(now time.Time, first bool) {
	phase := t.job.Phase
	if t.job.State != stateRunning {
		phase = ""
	}
	if phase == t.current {
		return
	}
	if before := t.phases[t.current]; before != nil {
		before.ended = now
	}
	t.current = phase
	if phase == "" {
		return
	}
	entered := &interval{began: now}
	if first && slices.Index(t.job.Phases, phase) > 0 {
		entered.began = time.Time{}
	}
	t.phases[phase] = entered
}

func (t *Tracker) rememberLags(now time.Time) {
	if t.cluster == nil || t.job == nil {
		return
	}
	for _, m := range t.movers() {
		if start, known := t.lags[m.Id]; !known || start.phase != t.job.Phase || m.Lag > start.lag {
			t.lags[m.Id] = lagStart{t.job.Phase, m.Lag, now}
		}
	}
}

// movers are the members that this job brings nearer: newcomers, and learners that are to vote.
func (t *Tracker) movers() []*quoratepb.Member {
	var out []*quoratepb.Member
	for _, m := range t.cluster.GetMembers() {
		if slices.Contains(t.job.Newcomers, m.Id) || slices.Contains(t.job.GetSpec().GetPromote(), m.Id) {
			out = append(out, m)
		}
	}
	return out
}

// The states and phases that are drawn in a way of their own; membership.Job says what they mean.
const (
	stateQueued   = "queued"
	stateRunning  = "running"
	stateDone     = "done"
	phaseSnapshot = "snapshot"
	phaseCatchUp  = "catch-up"
)

// Elapsed is how long the job runs, or ran.
func (t *Tracker) Elapsed(now time.Time) time.Duration {
	j := t.job
	switch {
	case j.StartedMs == 0:
		return 0
	case j.EndedMs != 0:
		return time.Duration(j.EndedMs-j.StartedMs) * time.Millisecond
	}
	return time.Duration(max(j.UpdatedMs-j.StartedMs, 0))*time.Millisecond + t.late + now.Sub(t.seen)
}

// Line says in one line what the job is at: for an output that cannot be drawn anew.
func (t *Tracker) Line(now time.Time) string {
	j := t.job
	switch {
	case j.State == stateQueued:
		return withColon("queued"+behind(j.QueuePosition), j.Message)
	case j.State == stateDone:
		return "done in " + Duration(t.Elapsed(now))
	case j.State != stateRunning:
		return withColon(j.State, j.Message)
	}
	return withColon(t.label(j.Phase), j.Message)
}

func behind(jobs uint32) string {
	if jobs == 0 {
		return ""
	}
	return " behind " + plural.Of(jobs, "job")
}

func withColon(what, why string) string {
	what = strings.TrimRight(what, " ")
	if why == "" {
		return what
	}
	return what + ": " + why
}

// label names a phase with its number, as wide as the longest of the job.
func (t *Tracker) label(phase string) string {
	at := slices.Index(t.job.Phases, phase)
	if at < 0 {
		return "[" + phase + "]" // undo, which no plan contains
	}
	width := 0
	for _, p := range t.job.Phases {
		width = max(width, len(p))
	}
	return fmt.Sprintf("[%d/%d] %-*s", at+1, len(t.job.Phases), width, phase)
}
