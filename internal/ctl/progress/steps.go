package progress

import (
	"slices"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
)

// StepState is whether the job has passed a phase.
type StepState int

// The states of a phase.
const (
	Coming StepState = iota
	Present
	Passed
)

// Step is a phase of the job.
type Step struct {
	Phase  string
	Number int // of the phases of the job, from 1; 0: no plan contains it
	State  StepState
	// Seen says that the phase, which has passed, was told by the cluster or seen: others passed before, too fast to be seen,
	// or were not needed. Took is how long it took; negative: its beginning or its end is not known.
	Seen bool
	Took time.Duration
	// BeganMs is when it began first, in Unix time by the leader's clock; 0: the cluster does not tell.
	BeganMs int64
	Text    string // what the job does in the present phase, or how it ended in it
	Move    []Move // how far members are in the present phase; empty: nothing is to be measured
}

// Move is how far a member is that receives the state, or the log.
type Move struct {
	Member      string
	Fraction    float64       // from 0 to 1
	Sent, Total int64         // bytes of the state; Total is 0 where it receives the log
	Rate        int64         // bytes a second; 0: not known
	From, Lag   uint64        // entries of the log that it lacked when this was seen first, and lacks now
	Left        time.Duration // negative: not known
}

// Steps are the phases of the job in their order, and behind them the one that undoes them, if the job is at that.
func (t *Tracker) Steps(now time.Time) []Step {
	steps := make([]Step, 0, len(t.job.Phases)+1)
	at := slices.Index(t.job.Phases, t.job.Phase)
	aside := t.job.Phase != "" && at < 0 // what was done is undone
	for i, phase := range t.job.Phases {
		s := Step{Phase: phase, Number: i + 1, BeganMs: t.told(phase)}
		switch {
		case t.job.State == stateDone, i < at, aside && (t.phases[phase] != nil || s.BeganMs > 0):
			t.past(&s)
		case i == at:
			t.present(now, &s)
		}
		steps = append(steps, s)
	}
	if aside {
		s := Step{Phase: t.job.Phase, BeganMs: t.told(t.job.Phase)}
		t.present(now, &s)
		steps = append(steps, s)
	}
	return steps
}

func (t *Tracker) past(s *Step) {
	s.State = Passed
	took := t.phases[s.Phase]
	s.Seen, s.Took = took != nil, -1
	if s.Seen && !took.began.IsZero() && !took.ended.IsZero() {
		s.Took = took.ended.Sub(took.began)
	}
	if end := t.toldEnd(s.Phase); s.BeganMs > 0 {
		s.Seen = true
		if end >= s.BeganMs { // two leaders have two clocks
			s.Took = time.Duration(end-s.BeganMs) * time.Millisecond
		}
	}
}

// told is when a phase began, as the cluster tells; 0: it does not.
func (t *Tracker) told(phase string) int64 {
	for _, b := range t.job.GetBegun() {
		if b.GetPhase() == phase {
			return b.GetAtMs()
		}
	}
	return 0
}

// toldEnd is when a phase that has passed ended, as the cluster tells: when the next one began, or the job ended; 0: it does
// not.
func (t *Tracker) toldEnd(phase string) int64 {
	begun := t.job.GetBegun()
	at := slices.IndexFunc(begun, func(b *quoratepb.PhaseTime) bool { return b.GetPhase() == phase })
	if at+1 < len(begun) {
		return begun[at+1].GetAtMs()
	}
	return t.job.GetEndedMs()
}

// present tells of the phase that is under way, or at which the job ended before it was done.
func (t *Tracker) present(now time.Time, s *Step) {
	s.State, s.Text = Present, t.job.Message
	if t.job.State != stateRunning {
		s.Text = t.job.State
		return
	}
	for _, m := range t.movers() {
		switch {
		case s.Phase == phaseSnapshot && m.SnapshotTotalBytes > 0:
			s.Move = append(s.Move, snapshotMove(m))
		case s.Phase == phaseCatchUp:
			s.Move = append(s.Move, t.logMove(now, m))
		}
	}
}

func snapshotMove(m *quoratepb.Member) Move {
	sent, total := m.SnapshotSentBytes, m.SnapshotTotalBytes
	move := Move{Member: Name(m), Sent: sent, Total: total, Fraction: float64(sent) / float64(total), Left: -1}
	if rate := m.BytesPerSecond; rate > 0 {
		move.Rate = rate
		move.Left = time.Duration(float64(max(total-sent, 0)) / float64(rate) * float64(time.Second))
	}
	return move
}

func (t *Tracker) logMove(now time.Time, m *quoratepb.Member) Move {
	start := t.lags[m.Id]
	move := Move{Member: Name(m), From: start.lag, Lag: m.Lag, Fraction: 1, Left: -1}
	if start.lag > 0 {
		move.Fraction = float64(start.lag-min(m.Lag, start.lag)) / float64(start.lag)
	}
	if took := now.Sub(start.at); took > 0 && start.lag > m.Lag && m.Lag > 0 {
		move.Left = time.Duration(float64(took) * float64(m.Lag) / float64(start.lag-m.Lag))
	}
	return move
}
