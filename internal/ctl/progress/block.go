package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
)

// Cells of a bar, on a wide terminal and on a narrow one.
const (
	barCells       = 20
	narrowBarCells = 8
	narrowColumns  = 90
)

// Block draws the whole job: a line for each phase, with bars for members that receive something. Columns is the width of
// the terminal, 0 if it is unknown.
func (t *Tracker) Block(now time.Time, columns int) []string {
	lines := []string{t.head(now)}
	at := slices.Index(t.job.Phases, t.job.Phase)
	aside := t.job.Phase != "" && at < 0 // what was done is undone
	for i, phase := range t.job.Phases {
		switch {
		case t.job.State == stateDone, i < at, aside && t.phases[phase] != nil:
			lines = append(lines, t.past(phase))
		case i == at:
			lines = append(lines, t.present(now, phase, columns)...)
		default:
			lines = append(lines, t.label(phase))
		}
	}
	if aside {
		lines = append(lines, t.present(now, t.job.Phase, columns)...)
	}
	if t.lost != "" {
		lines = append(lines, "connection lost ("+t.lost+"); the job goes on, trying again")
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func (t *Tracker) head(now time.Time) string {
	j := t.job
	text := fmt.Sprintf("%s job %x · ", Kind(j), j.Id)
	switch {
	case j.State == stateRunning && j.CancelAsked:
		return text + "is being cancelled"
	case j.State == stateRunning:
		return text + "running for " + Duration(t.Elapsed(now))
	}
	return text + t.Line(now)
}

// Kind is how people call a job.
func Kind(j *quoratepb.Job) string {
	if kind := j.GetSpec().GetKind(); kind != "" {
		return kind
	}
	return "change"
}

func (t *Tracker) past(phase string) string {
	label := t.label(phase)
	took := t.phases[phase]
	if took == nil {
		return label + "  passed" // before we looked, too fast to be seen, or because it was not needed
	}
	if took.began.IsZero() || took.ended.IsZero() {
		return label + "  done"
	}
	return label + "  done in " + Duration(took.ended.Sub(took.began))
}

// present draws the phase that is under way, or at which the job ended before it was done.
func (t *Tracker) present(now time.Time, phase string, columns int) []string {
	label := t.label(phase)
	if t.job.State != stateRunning {
		return []string{label + "  " + t.job.State}
	}
	var lines []string
	for _, m := range t.movers() {
		if text := t.movement(now, phase, m, columns); text != "" {
			lines = append(lines, label+"  "+text)
			label = strings.Repeat(" ", len(label))
		}
	}
	if len(lines) == 0 {
		return []string{label + "  " + t.job.Message}
	}
	return lines
}

// movement draws how far one member is in a phase, empty if there is nothing to measure.
func (t *Tracker) movement(now time.Time, phase string, m *quoratepb.Member, columns int) string {
	cells := barCells
	if columns > 0 && columns < narrowColumns {
		cells = narrowBarCells
	}
	switch {
	case phase == phaseSnapshot && m.SnapshotTotalBytes > 0:
		sent, total := m.SnapshotSentBytes, m.SnapshotTotalBytes
		text := Name(m) + "  " + Bar(float64(sent)/float64(total), cells) + "  " + part(sent, total)
		if rate := m.BytesPerSecond; rate > 0 {
			left := time.Duration(float64(max(total-sent, 0)) / float64(rate) * float64(time.Second))
			text += "  " + Size(rate) + "/s  " + Duration(left) + " left"
		}
		return text
	case phase == phaseCatchUp:
		start := t.lags[m.Id]
		fraction := 1.0
		if start.lag > 0 {
			fraction = float64(start.lag-min(m.Lag, start.lag)) / float64(start.lag)
		}
		text := fmt.Sprintf("%s  %s  lag %d → %d", Name(m), Bar(fraction, cells), start.lag, m.Lag)
		if took := now.Sub(start.at); took > 0 && start.lag > m.Lag && m.Lag > 0 {
			left := time.Duration(float64(took) * float64(m.Lag) / float64(start.lag-m.Lag))
			text += "  " + Duration(left) + " left"
		}
		return text
	}
	return ""
}

// Name is how people call a member: by its name, else by its id.
func Name(m *quoratepb.Member) string {
	if m.GetName() != "" {
		return m.GetName()
	}
	return fmt.Sprintf("%x", m.GetId())
}
