package verdict

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/doctor"
)

// mostAsked is how many members the table has.
const mostAsked = 32

// askedTable is who was asked, and how that went.
type askedTable struct {
	Rows  []askedRow
	Left  int
	Alone string // why only one member was asked; empty: all were
	Said  string
}

// askedRow is what came of asking one member.
type askedRow struct {
	Name, To string
	Good     bool
	Word     string // answered, or why it did not
	Why      string
	Took     string
	Build    string
	Up       string
	Clock    string
}

// faults say why a member did not answer.
var faults = map[string]string{
	doctor.FaultRefused:     "no process accepts connections there",
	doctor.FaultUnreachable: "nothing answers there",
	doctor.FaultSilent:      "a process accepts connections and says nothing",
	doctor.FaultClosed:      "a process accepts connections and closes them",
	doctor.FaultUnresolved:  "the name in its URL does not resolve",
	doctor.FaultAuthority:   "its certificate is of no authority that is trusted",
	doctor.FaultTLS:         "TLS failed",
	doctor.FaultNoEndpoint:  "it never said where it serves",
	doctor.FaultUnsupported: "its build knows no such question",
	doctor.FaultDenied:      "it does not answer this one",
	doctor.FaultLong:        "its answer is longer than any that a member gives",
	doctor.FaultOther:       "another process answers there",
	doctor.FaultUnlinked:    "its process runs, and the member that asked has no connection to it",
	doctor.FaultBusy:        "its process answers, and did not say in time what it observes",
}

func asked(ctx context.Context, r *page.Request) (any, error) {
	all, err := observed.Ask(ctx, r)
	if err != nil {
		return nil, err
	}
	return askedOf(all), nil
}

func askedOf(all *observed.Answer) *askedTable {
	q := &askedTable{Said: fmt.Sprintf("%d of %s answered", all.Answered(), plural.Of(len(all.Members), "member"))}
	if all.GetAlone() {
		q.Alone = "The build of this member does not ask the others. The verdict is of what it knows itself."
	}
	for i, m := range all.Members {
		if i >= mostAsked {
			q.Left = len(all.Members) - mostAsked
			break
		}
		q.Rows = append(q.Rows, rowOf(all, m))
	}
	return q
}

func rowOf(all *observed.Answer, m *observed.Member) askedRow {
	row := askedRow{Name: m.Name, Word: "no answer", Took: unknown, Build: m.Known.GetBuild(), Up: unknown, Clock: unknown}
	if m.ID != 0 {
		row.To = "/members?member=" + observed.Hex(m.ID)
	}
	switch {
	case m.Says != nil:
		row.Good, row.Word, row.Build = true, "answered", m.Says.GetBuild()
		row.Up = page.Duration(time.Duration(m.Says.GetUpMs()) * time.Millisecond)
		if took := m.Asked.GetRoundTripUs(); took > 0 {
			row.Took = page.Duration(time.Duration(took) * time.Microsecond)
		}
		row.Clock = clock(all, m)
	case m.Asked == nil:
		row.Word = "not asked"
		row.Why = "only the member that shows this was asked"
		if !all.GetAlone() {
			row.Why = "it is not among those that were asked"
		}
	default:
		row.Why = why(m.Asked.GetFault(), m.Asked.GetFaultText())
	}
	return row
}

// spoken are faults whose error says more than the fault does.
var spoken = []string{doctor.FaultUnresolved, doctor.FaultAuthority, doctor.FaultTLS, doctor.FaultDenied, doctor.FaultOther,
	doctor.FaultUnreachable}

// why says in words why a member did not answer, with the error behind it.
func why(fault, text string) string {
	words := faults[fault]
	switch {
	case words == "":
		return text
	case text == "" || !slices.Contains(spoken, fault):
		return words
	}
	return words + " (" + text + ")"
}

// clock is how much the clock of a member differs from that of the one that asked, as far as the way between lets one tell.
func clock(all *observed.Answer, m *observed.Member) string {
	off, within, known := all.Clock(m)
	switch {
	case !known && m.ID == all.GetByMember() && !all.GetAlone():
		return "its own"
	case !known:
		return unknown
	case off.Abs() <= within:
		return "the same, within " + page.Duration(within)
	case off > 0:
		return page.Duration(off) + " ahead"
	}
	return page.Duration(-off) + " behind"
}
