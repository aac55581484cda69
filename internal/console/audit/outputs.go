package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
)

// outputRow is an output of a member.
type outputRow struct {
	Member, To    string
	Note          string // in the place of the other columns; empty: they are known
	NoteLook      string
	Name, Kind    string
	Mode          string
	Look, State   string
	Why           string // why it takes no records
	Records, Lost string
}

type outputsView struct {
	Rows     []outputRow
	Left     int
	Look     string
	Word     string
	Sentence string
}

// mostOutputs is how many rows the table has.
const mostOutputs = 200

// outputs shows where records of all members go.
func outputs(ctx context.Context, r *page.Request) (any, error) {
	all, err := observed.Ask(ctx, r)
	if err != nil {
		return nil, err
	}
	return outputsOf(all), nil
}

func outputsOf(all *observed.Answer) *outputsView {
	v := new(outputsView)
	blocked, losing, without := 0, 0, 0
	for _, m := range all.Members {
		row := outputRow{Member: m.Name, To: "/members?member=" + observed.Hex(m.ID)}
		switch sinks := m.Says.GetAudit(); {
		case m.Says == nil:
			row.NoteLook, row.Note = "bad", "no answer: "+m.Asked.GetFaultText()
			v.Rows = append(v.Rows, row)
		case len(sinks) == 0 && m.Says.GetWindowMs() == 0:
			row.Note = "has started only now"
			v.Rows = append(v.Rows, row)
		case len(sinks) == 0:
			without++
			row.NoteLook, row.Note = "warn", "records nothing: it was started without --audit-log"
			v.Rows = append(v.Rows, row)
		default:
			stuck, loses := false, false
			for _, sink := range sinks {
				one := outputOf(row, sink)
				stuck, loses = stuck || sink.GetBlocked(), loses || sink.GetDropped() > 0
				v.Rows = append(v.Rows, one)
			}
			if stuck {
				blocked++
			}
			if loses {
				losing++
			}
		}
	}
	v.Left = max(0, len(v.Rows)-mostOutputs)
	v.Rows = v.Rows[:len(v.Rows)-v.Left]
	switch members := len(all.Members); {
	case blocked > 0:
		v.Look, v.Word = "bad", "calls are refused"
		v.Sentence = plural.Of(blocked, "member") + plural.Word(blocked, " refuses", " refuse") +
			" the calls that the policy records, since a required output takes no records. Repair it; root's calls pass."
	case losing > 0:
		v.Look, v.Word = "warn", "records are lost"
		v.Sentence = plural.Of(losing, "member") + " lost records in the last minute: an output does not take them fast enough."
	case without == members && members > 0:
		v.Word, v.Sentence = "off", "No member has an output, so nothing is recorded. Start members with --audit-log=FILE."
	case without > 0:
		v.Look, v.Word = "warn", "in part"
		v.Sentence = plural.Of(without, "member") + plural.Word(without, " records", " record") +
			" nothing: calls there leave no record."
	case all.Answered() < members:
		v.Look, v.Word, v.Sentence = "warn", "not known", "Not all members answered; the others take records."
	default:
		v.Look, v.Word, v.Sentence = "good", "all take records", "No member lost a record in the last minute."
	}
	return v
}

// lateAfter is for how long a record may wait before it is worth a word.
const lateAfter = time.Second

func outputOf(row outputRow, sink *quoratepb.ObservedOutput) outputRow {
	row.Name, row.Kind, row.Mode, row.Why = sink.GetName(), sink.GetKind(), "best effort", sink.GetTrouble()
	if sink.GetRequired() {
		row.Mode = "required"
		if ms := sink.GetDeadlineMs(); ms > 0 {
			row.Mode += ", within " + page.Seconds(time.Duration(ms)*time.Millisecond)
		}
	}
	row.Records, row.Lost = "–", "–"
	if row.Kind != "" {
		row.Records, row.Lost = page.Count(int64(sink.GetRecords())), page.Count(int64(sink.GetLost()))
	}
	late := time.Duration(sink.GetLateMs()) * time.Millisecond
	row.Look, row.State = "good", "takes records"
	switch {
	case sink.GetBlocked():
		row.Look, row.State = "bad", fmt.Sprintf("calls are refused, stuck for %s", page.Seconds(late))
	case sink.GetTrouble() != "":
		row.Look, row.State = "warn", "takes none"
		if late > 0 {
			row.State += " for " + page.Seconds(late)
		}
	case sink.GetDropped() > 0:
		row.Look, row.State = "warn", plural.Of(sink.GetDropped(), "record")+" lost in the last minute"
	case late > lateAfter:
		row.Look, row.State = "warn", "late, "+page.Seconds(late)
	}
	return row
}
