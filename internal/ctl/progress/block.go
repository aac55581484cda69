package progress

import (
	"fmt"
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
	steps := t.Steps(now)
	for i := range steps {
		lines = append(lines, t.draw(&steps[i], columns)...)
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

// draw draws a phase.
func (t *Tracker) draw(s *Step, columns int) []string {
	label := t.label(s.Phase)
	switch {
	case s.State == Coming:
		return []string{label}
	case s.State == Passed && !s.Seen:
		return []string{label + "  passed"}
	case s.State == Passed && s.Took < 0:
		return []string{label + "  done"}
	case s.State == Passed:
		return []string{label + "  done in " + Duration(s.Took)}
	case len(s.Move) == 0:
		return []string{label + "  " + s.Text}
	}
	var lines []string
	for i := range s.Move {
		lines = append(lines, label+"  "+s.Move[i].draw(columns))
		label = strings.Repeat(" ", len(label))
	}
	return lines
}

// draw draws how far one member is.
func (m *Move) draw(columns int) string {
	cells := barCells
	if columns > 0 && columns < narrowColumns {
		cells = narrowBarCells
	}
	text := m.Member + "  " + Bar(m.Fraction, cells) + "  "
	if m.Total > 0 {
		text += part(m.Sent, m.Total)
	} else {
		text += fmt.Sprintf("lag %d → %d", m.From, m.Lag)
	}
	if m.Rate > 0 {
		text += "  " + Size(m.Rate) + "/s"
	}
	if m.Left >= 0 {
		text += "  " + Duration(m.Left) + " left"
	}
	return text
}
