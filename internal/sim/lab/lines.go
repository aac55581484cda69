package lab

import (
	"slices"
	"strings"
)

// Line is a line of a chart in words, with the frame of the Tape that shows it first.
type Line struct {
	At      int64      `json:"at"` // nanoseconds since the beginning of the chart
	Frame   int        `json:"frame"`
	Kind    string     `json:"kind"`
	Text    string     `json:"text"`
	Members []memberID `json:"members,omitempty"` // whom it is about, if not all
}

var kindNames = map[Kind]string{
	KindNote: "note", KindArrow: "message", KindLeads: "leads", KindCampaign: "campaign", KindFollows: "follows",
	KindLogged:  "logged",
	KindInForce: "in-force", KindCommitted: "committed", KindSettled: "settled", KindUndone: "undone", KindRemoved: "removed",
	KindRequest: "request", KindRefused: "refused", KindDone: "done", KindSettledDone: "settled-done", KindFault: "fault",
	KindCrash: "crash", KindRestart: "restart", KindOff: "off", KindBreach: "breach",
}

// String returns a word for a kind, as a Line has it.
func (k Kind) String() string { return kindNames[k] }

// Lines returns the lines of the chart of a run that has a Tape.
func (r *Report) Lines() []Line {
	var lines []Line
	for _, n := range r.rows(false) {
		line := Line{At: int64(n.at), Frame: r.frame(n.frame), Kind: n.kind.String(), Text: n.words(), Members: n.where}
		switch {
		case n.note:
			line.Kind = "pause"
		case n.kind == KindArrow:
			line.Text, line.Members = sentence(n.arrows), ends(n.arrows)
		}
		lines = append(lines, line)
	}
	return lines
}

// frame returns the number of a frame that the Tape has.
func (r *Report) frame(number int) int { return max(0, min(number, len(r.Tape.Frames)-1)) }

// sentence says in words which messages left, and which were lost: "1 → 2,3: append C7 (lost: 3)".
func sentence(arrows []*Arrow) string {
	var from, to, lost []memberID
	add := func(ids *[]memberID, id memberID) {
		if !slices.Contains(*ids, id) {
			*ids = append(*ids, id)
		}
	}
	for _, a := range arrows {
		add(&from, a.From)
		add(&to, a.To)
		if a.Lost && len(arrows) > 1 {
			add(&lost, a.To)
		}
	}
	var b strings.Builder
	b.WriteString(list(from) + " → " + list(to) + ": " + arrows[0].What)
	switch {
	case len(lost) == len(arrows) || len(arrows) == 1 && arrows[0].Lost:
		b.WriteString(" (lost)")
	case len(lost) > 0 && len(from) == 1:
		b.WriteString(" (lost: " + list(lost) + ")")
	}
	return b.String()
}

// ends lists the members at both ends of messages.
func ends(arrows []*Arrow) []memberID {
	var ids []memberID
	for _, a := range arrows {
		ids = append(ids, a.From, a.To)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Moment is a moment of a story that is worth a look, with two sentences about it.
type Moment struct {
	Frame int    `json:"frame"`
	Text  string `json:"text"`
}

// Moments returns the moments of a story as it was played, in their order, for a report with a Tape.
func (s Story) Moments(r *Report, safe bool) []Moment {
	var found []Moment
	at := 0
	for _, m := range moments[s.Name] {
		if m.with != both && (m.with == kept) != safe {
			continue
		}
		next := slices.IndexFunc(r.Records[at:], func(rec Record) bool { return m.at.matches(&rec) })
		if next < 0 {
			continue // TestStory_Moments finds each of them
		}
		at += next
		found = append(found, Moment{Frame: r.frame(r.Records[at].frame), Text: m.text})
	}
	return found
}

// anchor is the beginning of a record's text: that of the first such record after the moment before.
type anchor string

func (a anchor) matches(rec *Record) bool {
	if rec.Arrow != nil {
		return rec.Arrow.shown && strings.HasPrefix(rec.Arrow.What, string(a))
	}
	return strings.HasPrefix(rec.Text, string(a)) && !rec.Minor
}
