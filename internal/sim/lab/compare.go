package lab

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Trial is one protocol's run of one standard change.
type Trial struct {
	Change   string        `json:"change"` // "replace one of 3"
	Dead     bool          `json:"dead"`   // a voter that stays in the configuration is dead
	Protocol string        `json:"protocol"`
	Done     float64       `json:"decided"` // rounds until the decision, which may be reported; negative: never
	Settled  float64       `json:"settled"` // rounds until the removed members may be switched off; negative: never
	Stall    time.Duration `json:"pause"`
	Messages int           `json:"messages"` // during the change, writes included
	Broken   int           `json:"broken"`   // laws
	// Stops has, for each stage, the fewest members whose crash there stops all writes while they stay down. Only trials in
	// which no voter is dead have it.
	Stops []int `json:"stops,omitempty"`
}

// standard are the changes by which protocols are compared. In each, a voter that stays may be dead.
var standard = []struct {
	name string
	o    Options
	dead memberID
}{
	{"add one to 3", Options{From: 3, Add: 1}, 3},
	{"remove one of 5", Options{From: 5, Remove: []memberID{5}}, 4},
	{"remove the leader of 5", Options{From: 5, Remove: []memberID{1}}, 4},
	{"replace one of 3", Options{From: 3, Add: 1, Remove: []memberID{2}}, 3},
	{"replace all 3", Options{From: 3, Add: 3, Remove: []memberID{1, 2, 3}}, 3},
	{"from 3 to 5", Options{From: 3, Add: 2}, 3},
}

// Changes lists the standard changes by which protocols are compared.
func Changes() []string {
	names := make([]string, len(standard))
	for i := range standard {
		names[i] = standard[i].name
	}
	return names
}

// Compare plays each standard change by each protocol, with all members up and with one dead, on links with the given delay.
func Compare(seed uint64, delay time.Duration) ([]Trial, error) {
	var up, dead []Trial
	for change := range standard {
		for _, protocol := range Compared() {
			some, err := CompareOne(change, protocol, seed, delay)
			if err != nil {
				return nil, err
			}
			up, dead = append(up, some[0]), append(dead, some[1])
		}
		up, dead = append(up, dead...), nil
	}
	return up, nil
}

// CompareOne plays one of Changes by one protocol: with all members up, and with one dead.
func CompareOne(change int, protocol string, seed uint64, delay time.Duration) (trials [2]Trial, err error) {
	if change < 0 || change >= len(standard) {
		return trials, fmt.Errorf("no change %d: there are 0 to %d", change, len(standard)-1)
	}
	row := &standard[change]
	o := row.o
	o.Seed, o.Delay = seed, delay
	if !o.SetProtocol(protocol) {
		return trials, fmt.Errorf("no protocol %q: there are %s", protocol, strings.Join(Compared(), ", "))
	}
	for i := range trials {
		if i > 0 {
			fault, err := ParseFault(fmt.Sprintf("crash-member:%d@1us", row.dead))
			if err != nil {
				return trials, err
			}
			o.Faults = []Fault{fault}
		}
		if trials[i], err = try(row.name, protocol, &o); err != nil {
			return trials, fmt.Errorf("%s by %s: %w", row.name, protocol, err)
		}
	}
	return trials, nil
}

// try plays one trial.
func try(change, protocol string, o *Options) (Trial, error) {
	r, err := Run(*o)
	if err != nil {
		return Trial{}, err
	}
	t := Trial{
		Change: change, Dead: len(o.Faults) > 0, Protocol: protocol, Done: -1, Settled: -1, Stall: r.Stall,
		Messages: r.Counts.Messages, Broken: len(r.Violations) + len(r.Laws),
	}
	if r.Done > 0 {
		t.Done = r.rounds(r.Done)
	}
	if r.Settled > 0 {
		t.Settled = r.rounds(r.Settled)
	}
	if !t.Dead {
		least, err := fewest(o)
		if err != nil {
			return t, err
		}
		t.Stops = least[:]
	}
	return t, nil
}

// Compared lists the protocols in the order of the table, the experiment last.
func Compared() []string { return ProtocolNames()[1:] }

// WriteTable writes trials as a table of Markdown, a row for each change and protocol.
func WriteTable(out io.Writer, trials []Trial) error {
	var b strings.Builder
	b.WriteString("| change | protocol | decided | settled | pause | messages | stopped by | " +
		"one dead: decided | settled | pause |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	last := ""
	for i := range trials {
		t := &trials[i]
		if t.Dead {
			continue
		}
		at := slices.IndexFunc(trials, func(d Trial) bool { return d.Dead && d.Change == t.Change && d.Protocol == t.Protocol })
		d := &trials[at]
		name := t.Change
		if name == last {
			name = ""
		}
		last = t.Change
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s ms | %d | %s | %s | %s | %s ms |\n", name, t.Protocol, inRounds(t.Done),
			inRounds(t.Settled), ms(t.Stall), t.Messages, numbers(t.Stops), inRounds(d.Done), inRounds(d.Settled), ms(d.Stall))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func inRounds(n float64) string {
	if n < 0 {
		return "never"
	}
	return fmt.Sprintf("%.1f", n)
}

// numbers writes the numbers of all stages: "2 2 1 2".
func numbers(of []int) string {
	words := make([]string, len(of))
	for i, n := range of {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " ")
}

// Colours of protocols in a picture, in their order.
var protocolColours = []string{"#4e79a7", "#e15759", "#59a14f", "#f28e2b", "#9c755f", "#b07aa1"}

// Picture draws the rounds of trials as bars: dark until the change is decided, light until it is settled.
func Picture(out io.Writer, trials []Trial) error {
	const left, top, bar, gap, scale, width = 320, 60, 12, 16, 22, 900
	y := top
	var b strings.Builder
	last := ""
	for i := range trials {
		t := &trials[i]
		name := t.Change
		if t.Dead {
			name += ", one dead"
		}
		if name != last {
			if y += gap; last == "" {
				y = top
			}
			fmt.Fprintf(&b, `<text x="8" y="%d" font-weight="bold">%s</text>`+"\n", y+bar-2, name)
			last = name
		}
		colour := protocolColours[slices.Index(Compared(), t.Protocol)%len(protocolColours)]
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" font-size="10">%s</text>`+"\n", left-6, y+bar-2, t.Protocol)
		settled, done := max(t.Settled, 0)*scale, max(t.Done, 0)*scale
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s" opacity="0.35"/>`+"\n",
			left, y, settled, bar-2, colour)
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", left, y, done, bar-2, colour)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" font-size="10">%s, settled %s</text>`+"\n", left+max(settled, done)+6, y+bar-2,
			inRounds(t.Done), inRounds(t.Settled))
		y += bar
	}
	_, err := fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"
 font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/>
<text x="8" y="24" font-size="16">Protocols of membership change: rounds until decided (dark) and settled (light)</text>
<text x="8" y="42">A round is there, to the disk, and back. quoratesim reconfig --compare. activate-switched: see ADR 63</text>
%s</svg>
`, width, y+20, b.String())
	return err
}
