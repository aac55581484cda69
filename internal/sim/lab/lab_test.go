package lab_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/lab"
)

type memberIDs = []consensus.MemberID

func protocol(t *testing.T, name string) consensus.Protocol {
	t.Helper()
	p, known := consensus.ParseProtocol(name)
	if !known {
		t.Fatalf("no protocol %s", name)
	}
	return p
}

func faults(t *testing.T, texts ...string) []lab.Fault {
	t.Helper()
	var faults []lab.Fault
	for _, text := range texts {
		f, err := lab.ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		faults = append(faults, f)
	}
	return faults
}

func chart(t *testing.T, r *lab.Report, verbose bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Chart(&b, verbose); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func picture(t *testing.T, r *lab.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.SVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// changes are pairs of sizes, some with a leader that leaves.
var changes = []lab.Options{
	{From: 3, To: 5},
	{From: 5, To: 3},
	{From: 3, To: 4},
	{From: 1, To: 3},
	{From: 3, To: 2, Remove: memberIDs{1}},
	{From: 3, To: 3, Remove: memberIDs{1, 2, 3}},
	{From: 4, Demote: memberIDs{1, 2}},
}

var troubles = []string{
	"", "leader-crash@0", "leader-crash@1", "leader-crash@2", "leader-crash@3", "leader-restart@1+200ms",
	"leader-restart@3+40ms", "partition@0:1|2,3,4,5,6", "partition@2:1,2|3,4,5,6", "crash-member:2@1", "drop-config-to:2", "lag:2",
}

// Ensure that after any fault at any stage a change ends in the old or the new configuration, and that no acknowledged write is
// lost.
func TestRun_everyProtocolAndStage(t *testing.T) {
	for _, name := range consensus.ProtocolNames() {
		for _, o := range changes {
			o.Protocol = protocol(t, name)
			for _, trouble := range troubles {
				o.Faults = nil
				if trouble != "" {
					o.Faults = faults(t, strings.ReplaceAll(trouble, memberList(6), memberList(members(&o))))
				}
				o.Seed++
				checkRun(t, &o, trouble)
			}
		}
	}
}

// Ensure that by the experiment, too, no write is lost and no two majorities decide: its price is that a cluster may stand
// still, which needs more faults than these.
func TestRun_experiment(t *testing.T) {
	stuck, runs := 0, 0
	for _, o := range changes {
		for _, trouble := range troubles {
			if trouble != "" {
				o.Faults = faults(t, strings.ReplaceAll(trouble, memberList(6), memberList(members(&o))))
			}
			for o.Seed = 1; o.Seed <= 3; o.Seed++ {
				o.SetProtocol(lab.ProtocolSwitched)
				r, err := lab.Run(o)
				if err != nil {
					t.Fatalf("%v: %v", o, err)
				}
				runs++
				for _, v := range r.Laws {
					t.Errorf("%s, seed %d: %v", r.Title, o.Seed, v)
				}
				for _, v := range r.Violations {
					if v.Breach != lab.BreachUnavailable {
						t.Errorf("%s, seed %d: %v\n%s", r.Title, o.Seed, v, chart(t, r, false))
					}
				}
				if len(r.Violations) > 0 {
					stuck++
					t.Log(r.Title, o.Seed)
				}
			}
			o.Faults = nil
		}
	}
	t.Logf("%d of %d runs stand still", stuck, runs)
}

// members returns the number of members of a run.
func members(o *lab.Options) int {
	to := o.To
	if to == 0 {
		to = o.From - len(o.Remove) - len(o.Demote)
	}
	return max(o.From, to+len(o.Remove)+len(o.Demote))
}

func memberList(count int) string {
	var words []string
	for id := 3; id <= max(3, count); id++ {
		words = append(words, fmt.Sprint(id))
	}
	return strings.Join(words, ",")
}

func checkRun(t *testing.T, o *lab.Options, trouble string) {
	t.Helper()
	r, err := lab.Run(*o)
	if err != nil {
		t.Fatalf("%v: %v", o, err)
	}
	if r.Broken() || r.Lost > 0 {
		t.Errorf("%s, seed %d: %v, %v\n%s", r.Title, o.Seed, r.Violations, r.Laws, chart(t, r, false))
	}
	if r.Outcome != "old configuration" && r.Outcome != "new configuration" {
		t.Errorf("%s, seed %d: ends with %s\n%s", r.Title, o.Seed, r.Outcome, chart(t, r, false))
	}
	if trouble == "" && (r.Outcome != "new configuration" || r.Settled == 0) {
		t.Errorf("%s, seed %d: %s, settled after %v", r.Title, o.Seed, r.Outcome, r.Settled)
	}
	if r.Acked == 0 {
		t.Errorf("%s, seed %d: no write was acknowledged", r.Title, o.Seed)
	}
}

// Ensure that equal options give equal bytes, and another seed other ones.
func TestRun_deterministic(t *testing.T) {
	o := lab.Options{Protocol: consensus.ProtocolActivate, From: 3, To: 5, Faults: faults(t, "leader-crash@2"), Seed: 3}
	draw := func() string {
		r, err := lab.Run(o)
		if err != nil {
			t.Fatal(err)
		}
		return chart(t, r, true) + picture(t, r)
	}
	first := draw()
	if first != draw() {
		t.Error("two runs of one seed differ")
	}
	o.Seed = 4
	if first == draw() {
		t.Error("two seeds give the same run")
	}
}

// Ensure that the chart equals the one in testdata. Rewrite with -rewrite, and look at it.
func TestReport_Chart_golden(t *testing.T) {
	datadriven.RunTest(t, "testdata/chart.txt", func(t *testing.T, d *datadriven.TestData) string {
		var name, fault string
		o := lab.Options{}
		d.ScanArgs(t, "protocol", &name)
		d.ScanArgs(t, "from", &o.From)
		d.ScanArgs(t, "to", &o.To)
		if d.MaybeScanArgs(t, "fault", &fault) {
			o.Faults = faults(t, fault)
		}
		o.Protocol = protocol(t, name)
		r, err := lab.Run(o)
		if err != nil {
			t.Fatal(err)
		}
		return chart(t, r, false)
	})
}

// Ensure that charts fit their width, and simple ones a terminal page.
func TestReport_Chart_size(t *testing.T) {
	for _, name := range consensus.ProtocolNames() {
		r, err := lab.Run(lab.Options{Protocol: protocol(t, name), From: 3, To: 4})
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(chart(t, r, false), "\n")
		if len(lines) > 50 {
			t.Errorf("%s: a simple change takes %d lines", name, len(lines))
		}
		for _, line := range lines {
			if n := len([]rune(line)); n > 140 {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
		if verbose := strings.Count(chart(t, r, true), "\n"); verbose <= len(lines) {
			t.Errorf("%s: verbose draws %d lines, not more than %d", name, verbose, len(lines))
		}
	}
}

// simulated are the laws of the simulator that notice first what each story does without its rule. They say nothing of a cluster
// that stands still.
var simulated = map[string]string{
	"two-leaders": "configuration", "two-changes": "configuration", "removed-leader-counts-itself": "commit-rule",
	"union-of-joint": "election-safety", "learner-counted": "commit-rule", "direct-switch": "configuration",
	"joint-leader-dies": "commit-rule", "cop": "configuration", "one-log": "configuration", "fast-join": "fast-path",
}

// Ensure that each story ends well with its rule, and as it warns without.
func TestStory_Play(t *testing.T) {
	for _, s := range lab.Stories() {
		for _, safe := range []bool{true, false} {
			r, err := s.Play(safe)
			if err != nil {
				t.Fatal(err)
			}
			if !s.Kept(r, safe) {
				t.Errorf("%s, safe %v: %v, %v\n%s", s.Name, safe, r.Violations, r.Laws, chart(t, r, false))
			}
			if law := simulated[s.Name]; !safe && (law == "") != (len(r.Laws) == 0) || !safe && law != "" && r.Laws[0].Property != law {
				t.Errorf("%s: of the simulator's laws %q should notice first: %v", s.Name, law, r.Laws)
			}
			checkPicture(t, s.Name, picture(t, r))
			for _, line := range append(strings.Split(chart(t, r, false), "\n"), r.Title) {
				if n := len([]rune(line)); n > 150 {
					t.Errorf("%s: %d columns: %s", s.Name, n, line)
				}
			}
		}
		if _, err := lab.FindStory(s.Name); err != nil {
			t.Error(err)
		}
	}
	if _, err := lab.FindStory("cinderella"); err == nil || !strings.Contains(err.Error(), "two-leaders") {
		t.Errorf("an unknown story: %v", err)
	}
}

// Ensure that each story equals the one in testdata/stories, with its rule and without. Rewrite with -rewrite, and look at it.
func TestStory_golden(t *testing.T) {
	told := map[string]bool{}
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s, err := lab.FindStory(d.Cmd)
			if err != nil {
				t.Fatal(err)
			}
			safe := d.HasArg("safe")
			told[fmt.Sprint(s.Name, safe)] = true
			r, err := s.Play(safe)
			if err != nil {
				t.Fatal(err)
			}
			return withoutLegend(chart(t, r, false))
		})
	})
	for _, s := range lab.Stories() {
		for _, safe := range []bool{false, true} {
			if !told[fmt.Sprint(s.Name, safe)] {
				t.Errorf("testdata/stories has no %s, safe %v", s.Name, safe)
			}
		}
	}
}

// Ensure that docs/simulation.md tells each story with its rule, in the words of the table of rules.
func TestStories_documented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range lab.Stories() {
		_, row, _ := strings.Cut(string(text), "\n| `"+s.Name+"` | ")
		row, _, _ = strings.Cut(row, "\n")
		if s.Rule == "" || !strings.Contains(row, " | "+s.Rule+" | ") {
			t.Errorf("docs/simulation.md has no row | `%s` | ... | %s |", s.Name, s.Rule)
		}
	}
}

// withoutLegend removes the part that is the same in all charts.
func withoutLegend(text string) string {
	head, rest, _ := strings.Cut(text, "A column for each member")
	_, rest, _ = strings.Cut(rest, "\n\n")
	return head + rest
}

// checkPicture checks that a picture is well-formed XML of a bounded size.
func checkPicture(t *testing.T, name, text string) {
	t.Helper()
	if len(text) > 200_000 {
		t.Errorf("%s: the picture has %d bytes", name, len(text))
	}
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// Ensure that a long run has a picture of bounded size too.
func TestReport_SVG_bounded(t *testing.T) {
	r, err := lab.Run(lab.Options{From: 5, To: 3, Faults: faults(t, "partition@0:1,2|3,4,5")})
	if err != nil {
		t.Fatal(err)
	}
	for range 9 {
		r.Records = append(r.Records, r.Records...)
		if len(r.Records) > 5000 {
			break
		}
	}
	r.Title = `<script>"&'</script>`
	text := picture(t, r)
	checkPicture(t, "long", text)
	if strings.Contains(text, "<script>") || !strings.Contains(text, "left out") {
		t.Error("the title is not escaped, or nothing was left out")
	}
}

func TestParseFault_errors(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"earthquake@1", "leader-crash@WHEN"},
		{"leader-crash", "@WHEN"},
		{"leader-crash@4", "stage"},
		{"leader-crash@soon", "stage"},
		{"leader-crash@-5ms", "stage"},
		{"leader-crash:1@0", "names a member"},
		{"leader-restart@1", "leader-restart@1+200ms"},
		{"crash-member@1", "names a member"},
		{"crash-member:x@1", "no member"},
		{"crash-member:77@1", "no member"},
		{"partition@1", "groups"},
		{"partition@1:1,a|2", "groups"},
		{"lag:2@1", "all the time"},
		{"drop-config-to", "names a member"},
	} {
		if _, err := lab.ParseFault(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.text, err, tc.want)
		}
	}
}

func TestRun_badOptions(t *testing.T) {
	for _, tc := range []struct {
		name    string
		options lab.Options
		want    string
	}{
		{"no members", lab.Options{From: 0, To: 3}, "1 to 9"},
		{"too many", lab.Options{From: 5, To: 11}, "1 to 9"},
		{"too many at once", lab.Options{From: 8, To: 8, Remove: memberIDs{1, 2}}, "room for 9"},
		{"nothing to do", lab.Options{From: 3, To: 3}, "nothing to change"},
		{"nobody left", lab.Options{From: 2, Remove: memberIDs{1, 2}}, "nobody"},
		{"sizes that do not fit", lab.Options{From: 3, To: 4, Add: 2}, ""},
		{"too few removed", lab.Options{From: 3, To: 5, Add: 1}, "not 5"},
		{"a non-member removed", lab.Options{From: 3, Remove: memberIDs{7}}, "no voter"},
		{"removed and demoted", lab.Options{From: 3, Remove: memberIDs{2}, Demote: memberIDs{2}}, "twice"},
		{"a non-member crashes", lab.Options{From: 3, To: 4, Faults: faults(t, "crash-member:8@1")}, "1 to 4"},
		{"no such rule", lab.Options{From: 3, To: 4, Breaks: []string{"gravity"}}, "union-of-joint"},
		{"a slow link", lab.Options{From: 3, To: 4, Delay: 1e12}, "delay"},
	} {
		_, err := lab.Run(tc.options)
		if got := fmt.Sprint(err); (err == nil) != (tc.want == "") || !strings.Contains(got+" ", tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

// Ensure that switched off rules are noticed outside the stories, too.
func TestRun_broken(t *testing.T) {
	r, err := lab.Run(lab.Options{
		Protocol: consensus.ProtocolActivate, From: 3, To: 3, Remove: memberIDs{1, 2, 3}, Breaks: []string{"off-before-settled"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Violations) == 0 || r.Violations[0].Breach != lab.BreachUnavailable {
		t.Errorf("members switched off too early: %v", r.Violations)
	}
}
