package undelete

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/ctl/backup"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ctl/screen"
	"github.com/quorate/quorate/internal/ctl/wording"
	"github.com/quorate/quorate/internal/undelete"
)

func sizeText(bytes int64) string { return progress.Size(bytes) }

// printPlan prints the plan where the answers go. Before the operator is asked, it is printed for people, too.
func (w *work) printPlan(p *undelete.Plan) error {
	if w.JSON() {
		if !w.yes && !w.dryRun {
			w.writePlan(w.Streams.Err, p)
		}
		return command.PrintJSON(w.Streams.Out, w.planOutput(p))
	}
	w.writePlan(w.Streams.Out, p)
	return nil
}

func (w *work) writePlan(out io.Writer, p *undelete.Plan) {
	command.Say(out, w.head(p))
	t := &command.Table{}
	t.Add("  KEY", "DELETED AT", "VALUE OF", "SIZE", "")
	for _, one := range p.Items[:min(w.rows, len(p.Items))] {
		deleted, lease := "?", ""
		if one.Deleted > 0 {
			deleted = strconv.FormatInt(one.Deleted, 10)
		}
		if one.Lease != 0 {
			lease = "had lease " + command.HexID(uint64(one.Lease))
		}
		t.Add("  "+wording.Key(one.Key), deleted, strconv.FormatInt(one.ModRevision, 10), sizeText(one.Size), lease)
	}
	if len(p.Items) > 0 {
		t.Print(out)
	}
	if more := len(p.Items) - w.rows; more > 0 {
		command.Say(out, fmt.Sprintf("  and %s; see all with --rows or -o json", plural.Of(more, "other key")))
	}
	command.Say(out, w.sum(p))
	w.writeExisting(out, &p.Kept, "Exist, and are left alone")
	if p.More != nil {
		command.Say(out, fmt.Sprintf("More keys are gone, from %s on: the same command, given again, goes on there.",
			wording.Key(p.More)))
	}
}

// head says what is restored.
func (w *work) head(p *undelete.Plan) string {
	what := "all keys"
	switch {
	case w.exact:
		what = "the key " + wording.Key([]byte(w.prefix))
	case w.prefix != "":
		what = "keys that begin with " + wording.Key([]byte(w.prefix))
	}
	if w.from != "" {
		what += " from " + wording.Key([]byte(w.from)) + " on"
	}
	as := "each as it was before its last deletion"
	if w.of != nil {
		as = "as of " + backup.ProofText(w.of)
	} else if w.at > 0 {
		as = fmt.Sprintf("as of revision %d", w.at)
	}
	if m := w.told.GetAfter(); m != nil {
		as += fmt.Sprintf(", the last that was certainly there at %s UTC (%s noted it at %s; up to revision %d may have been)",
			w.when.UTC().Format(time.DateTime), wording.Teller(m), wording.Time(m.GetUnixMs()), w.told.GetAtMost())
	}
	return fmt.Sprintf("PLAN  %s · %s · the store is at revision %d, its history begins at %d", what, as, p.Revision, p.First)
}

func (w *work) sum(p *undelete.Plan) string {
	text := "Nothing is to be written."
	if len(p.Items) > 0 {
		text = fmt.Sprintf("%s, %s, to be written.", plural.Of(len(p.Items), "key"), sizeText(p.Bytes))
	}
	if p.Leased > 0 {
		text += fmt.Sprintf(" %d of them had a lease, and will not expire: leases are not restored.", p.Leased)
	}
	if p.LeftOut > 0 {
		text += fmt.Sprintf(" %s had a lease and %s left out: --leased restores %s, without it.", plural.Of(p.LeftOut, "key"),
			plural.Word(p.LeftOut, "is", "are"), plural.Word(p.LeftOut, "it", "them"))
	}
	return text
}

// writeExisting counts keys that exist, and lists those with another value.
func (w *work) writeExisting(out io.Writer, e *undelete.Existing, are string) {
	if e.Same+e.Other == 0 {
		return
	}
	command.Say(out, fmt.Sprintf("%s: %d with the value that would be restored, %d with another.", are, e.Same, e.Other))
	left := w.rows
	for _, one := range e.Listed {
		if one.Same {
			continue
		}
		if left--; left < 0 {
			break
		}
		since := fmt.Sprintf("has another value since revision %d", one.ModRevision)
		if one.ModRevision == 0 {
			since = "was there for a moment, and is gone again"
		}
		command.Say(out, "  "+wording.Key(one.Key)+"  "+since)
	}
}

// printResult prints what was done.
func (w *work) printResult(p *undelete.Plan, r *undelete.Result) error {
	if w.JSON() {
		return command.PrintJSON(w.Streams.Out, resultOutput(r))
	}
	out := w.Streams.Out
	text := fmt.Sprintf("restored %s, %s", plural.Of(r.Restored, "key"), sizeText(r.Bytes))
	if r.Revision > 0 {
		text += fmt.Sprintf("; the last one at revision %d", r.Revision)
	}
	command.Say(out, text)
	w.writeExisting(out, &r.Came, "Came meanwhile, and are left alone")
	w.writeLost(out, r.Gone, "compacted before they were read")
	w.writeLost(out, r.TooLarge, "larger than a request may be (--max-request-bytes)")
	if p.More != nil && r.Settled() == len(p.Items) {
		words := []string{"quorate", "undelete", w.prefix, "--from", string(p.More)}
		switch {
		case w.of != nil:
			words = append(words, "--from-backup", w.past.URL(), "--at", fmt.Sprint("entry:", w.of.Entry))
		case w.at > 0:
			words = append(words, "--at", strconv.FormatInt(w.at, 10))
		}
		command.Say(out, "More keys are gone: "+typed.Line(words...))
	}
	return nil
}

func (w *work) writeLost(out io.Writer, lost []undelete.Item, why string) {
	if len(lost) == 0 {
		return
	}
	command.Say(out, fmt.Sprintf("Not restored, because %s: %s", why, plural.Of(len(lost), "key")))
	for _, one := range lost[:min(w.rows, len(lost))] {
		command.Say(out, "  "+wording.Key(one.Key))
	}
}

// sayEvery is the time between two lines about work that goes on, where no terminal can draw them in place.
const sayEvery = 5 * time.Second

// working says how far the work is: in place on a terminal, else now and then on the error stream.
type working struct {
	screen *screen.Screen // nil: there is no terminal
	errors io.Writer
	said   time.Time
}

func newProgress(c *command.Connection) *working {
	p := &working{errors: c.Streams.Err, said: time.Now()}
	if c.Streams.Terminal && !c.JSON() {
		p.screen = &screen.Screen{Out: c.Streams.Out, Width: command.TerminalWidth}
	}
	return p
}

func (p *working) say(format string, args ...any) {
	switch {
	case p.screen != nil:
		p.screen.Draw([]string{fmt.Sprintf(format, args...)})
	case time.Since(p.said) >= sayEvery:
		p.said = time.Now()
		fmt.Fprintf(p.errors, format+"\n", args...)
	}
}

func (p *working) end() {
	if p.screen != nil {
		p.screen.Erase()
	}
}
