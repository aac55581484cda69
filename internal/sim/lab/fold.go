package lab

import (
	"fmt"
	"slices"
	"time"
)

// row is one line of a chart: a record, or several equal records at about the same time.
type row struct {
	at     time.Duration
	kind   Kind
	text   string
	cells  []Cell
	marks  map[memberID]string
	arrows []*Arrow
	where  []memberID // of a folded record
	note   bool       // a line between rows: time passes
	frame  int        // of the Tape, which shows it first
}

// rows folds records into lines: equal records of several members at about the same time become one line, and so do messages
// that are sent together. Repetitions and minor records are left out unless verbose.
func (r *Report) rows(verbose bool) []row {
	var rows []row
	last := map[string]*Arrow{}
	for i := range r.Records {
		rec := &r.Records[i]
		if !verbose && (rec.Minor || (rec.Arrow != nil && !worth(rec.Arrow, last))) {
			continue
		}
		if at := r.joins(rows, rec); at >= 0 {
			rows[at].join(rec)
			continue
		}
		rows = append(rows, newRow(rec))
	}
	return r.between(rows, verbose)
}

// worth reports whether a message is worth a line: a repetition with the same outcome is not.
func worth(a *Arrow, last map[string]*Arrow) bool {
	if !a.shown {
		return false
	}
	key := fmt.Sprintf("%v>%v %s", a.From, a.To, a.What)
	before := last[key]
	last[key] = a
	return before == nil || (before.Lost && !a.Lost)
}

func newRow(rec *Record) row {
	n := row{at: rec.At, kind: rec.Kind, text: rec.Text, cells: rec.Cells, marks: map[memberID]string{}, frame: rec.frame}
	n.join(rec)
	return n
}

func (n *row) join(rec *Record) {
	if rec.Arrow != nil {
		n.arrows = append(n.arrows, rec.Arrow)
		n.text = rec.Arrow.What
		return
	}
	if rec.Mark != "" && rec.Member > 0 {
		n.marks[rec.Member] = rec.Mark
	}
	if rec.Member > 0 && !slices.Contains(n.where, rec.Member) {
		n.where = append(n.where, rec.Member)
	}
}

// folded reports whether records of a kind become one line for several members.
func folded(kind Kind) bool {
	switch kind {
	case KindInForce, KindCommitted, KindSettled, KindUndone:
		return true
	}
	return false
}

// joins finds the row that a record belongs to: a recent one, without a dividing row after it.
func (r *Report) joins(rows []row, rec *Record) int {
	for at := len(rows) - 1; at >= 0; at-- {
		n := &rows[at]
		if rec.At-n.at > r.delay/2 {
			return -1
		}
		switch {
		case rec.Arrow != nil && n.kind == KindArrow && sameFan(n.arrows, rec.Arrow, r.delay):
			return at
		case rec.Arrow == nil && folded(rec.Kind) && n.kind == rec.Kind && n.text == rec.Text &&
			!slices.Contains(n.where, rec.Member):
			return at
		case !folded(n.kind) && n.kind != KindArrow && n.kind != KindRemoved:
			return -1
		}
	}
	return -1
}

// sameFan reports whether a message is one of several that a member sends to others at the same time, or receives from others.
func sameFan(arrows []*Arrow, a *Arrow, delay time.Duration) bool {
	first := arrows[0]
	if first.What != a.What {
		return false
	}
	for _, b := range arrows {
		if b.From == a.From && b.To == a.To {
			return false
		}
	}
	out := first.From == a.From && a.Sent == first.Sent
	in := first.To == a.To && a.Sent-first.Sent < delay/2
	return (out || in) && (len(arrows) == 1 || (arrows[1].From == first.From) == (a.From == first.From))
}

// between adds lines for the time that passes between rows.
func (r *Report) between(rows []row, verbose bool) []row {
	if verbose {
		return rows
	}
	var out []row
	for i := range rows {
		if i > 0 {
			if from, to := rows[i-1].at, rows[i].at; to-from > 6*r.delay {
				out = append(out, row{
					at: from, note: true, cells: rows[i-1].cells, text: r.passes(from, to), frame: rows[i-1].frame,
				})
			}
		}
		out = append(out, rows[i])
	}
	return out
}

func (r *Report) passes(from, to time.Duration) string {
	n := 0
	for _, at := range r.Acks {
		if at > from && at <= to {
			n++
		}
	}
	switch {
	case len(r.Acks) == 0:
		return fmt.Sprintf("%s ms pass", ms(to-from))
	case n == 0:
		return fmt.Sprintf("%s ms pass, no write is acknowledged", ms(to-from))
	case n == 1:
		return fmt.Sprintf("%s ms pass, 1 write is acknowledged", ms(to-from))
	}
	return fmt.Sprintf("%s ms pass, %d writes are acknowledged", ms(to-from), n)
}

// words completes the text of a folded row with its members.
func (n *row) words() string {
	if !folded(n.kind) {
		return n.text
	}
	slices.Sort(n.where)
	switch n.kind {
	case KindCommitted, KindSettled:
		if len(n.where) > 1 {
			return n.text[:len(n.text)-1] + " " + list(n.where) // "knows 2" but "know 2,3"
		}
	}
	return n.text + " " + list(n.where)
}
