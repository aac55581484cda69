package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// verdict is the output for programs.
type verdict struct {
	Cluster  string           `json:"cluster_id,omitempty"`
	AtMS     int64            `json:"at_ms"`
	Members  int              `json:"members"`
	Answered int              `json:"answered"`
	Leader   string           `json:"leader,omitempty"`
	Worst    doctor.Severity  `json:"worst_severity"` // 0: nothing was found
	Findings []doctor.Finding `json:"findings"`
	Muted    []doctor.Finding `json:"muted,omitempty"`
}

func verdictOf(c *quoratepb.Collected, loud, muted []doctor.Finding) verdict {
	v := verdict{AtMS: c.GetAtMs(), Members: len(c.GetMembers()), Worst: doctor.Worst(loud), Findings: loud, Muted: muted}
	if loud == nil {
		v.Findings = []doctor.Finding{}
	}
	if id := clusterOf(c); id != 0 {
		v.Cluster = command.HexID(id)
	}
	term := uint64(0)
	for _, m := range c.GetMembers() {
		o := m.GetObservation()
		if o == nil {
			continue
		}
		v.Answered++
		if core := o.GetCore(); core.GetLeader() == m.GetId() && core.GetTerm() >= term {
			v.Leader, term = m.GetName(), core.GetTerm()
		}
	}
	return v
}

// width is how wide a line is on a terminal; elsewhere each sentence is one line.
const width = 100

// print writes the verdict for people.
func (p *patient) print(c *quoratepb.Collected, loud, muted []doctor.Finding) {
	out, v := p.Streams.Out, verdictOf(c, loud, muted)
	columns := 0
	if p.Streams.Terminal {
		columns = width
		if n := command.TerminalWidth(); n > 20 {
			columns = min(n, width)
		}
	}
	leader := "no leader"
	if v.Leader != "" {
		leader = "leader " + v.Leader
	}
	cluster := "cluster " + v.Cluster
	if v.Cluster == "" {
		cluster = "cluster unknown"
	}
	fmt.Fprintf(out, "%s · %d of %s answered · %s · %s\n", cluster, v.Answered, plural.Of(v.Members, "member"), leader,
		Summary(loud))
	for i := range loud {
		f := &loud[i]
		if f.Because != "" {
			say(out, columns, "    ", fmt.Sprintf("so also %s: %s", f.Code, f.Sentence))
			continue
		}
		fmt.Fprintf(out, "\n%s  %s\n", strings.ToUpper(f.Severity.String()), f.Code)
		say(out, columns, "  ", f.Sentence)
		fmt.Fprintf(out, "  → %s\n", f.Cure)
	}
	if len(muted) > 0 {
		var codes []string
		for i := range muted {
			codes = append(codes, string(muted[i].Code))
		}
		fmt.Fprintf(out, "\nmuted: %s (quorate doctor mutes)\n", strings.Join(slices.Compact(codes), ", "))
	}
}

// Summary counts in words what was found, without what another finding explains.
func Summary(loud []doctor.Finding) string {
	count := map[doctor.Severity]int{}
	for i := range loud {
		if loud[i].Because == "" {
			count[loud[i].Severity]++
		}
	}
	var parts []string
	for s := doctor.CannotWrite; s <= doctor.Advice; s++ {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	if len(parts) == 0 {
		return "nothing is wrong"
	}
	return strings.Join(parts, ", ")
}

// say writes a sentence, in lines of so many columns; 0: in one.
func say(out io.Writer, columns int, indent, text string) {
	line := indent
	for word := range strings.FieldsSeq(text) {
		if columns > 0 && len(line)+len(word) >= columns && len(line) > len(indent) {
			fmt.Fprintln(out, strings.TrimRight(line, " "))
			line = indent
		}
		line += word + " "
	}
	fmt.Fprintln(out, strings.TrimRight(line, " "))
}
