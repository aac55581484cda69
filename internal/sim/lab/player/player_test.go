package player_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/sim/lab"
	"github.com/quorate/quorate/internal/sim/lab/player"
)

// Ensure that a link is written as it was read, with its parts in their order and without the usual values.
func TestParseLink(t *testing.T) {
	for _, tc := range []struct{ text, want, command string }{
		{"story=cop", "story=cop&rule=dropped", "quoratesim reconfig --story cop"},
		{"#rule=kept&story=cop&at=7", "story=cop&rule=kept&at=7", "quoratesim reconfig --story cop --safe"},
		{"", "protocol=joint&from=3&to=5", "quoratesim reconfig --protocol joint --from 3 --to 5"},
		{"to=1&from=3&protocol=single&at=0", "protocol=single&from=3&to=1", "quoratesim reconfig --protocol single --from 3 --to 1"},
		{"protocol=activate&from=5&remove=1,2&demote=3&seed=9&delay=20ms&fast=1",
			"protocol=activate&from=5&remove=1,2&demote=3&fast=1&seed=9&delay=20ms",
			"quoratesim reconfig --protocol activate --from 5 --remove 1,2 --demote 3 --fast --seed 9 --delay 20ms"},
		{"fault=partition@1:1,2%7C3,4,5&fault=heal@300ms&drop=direct-switch&drop=direct-switch",
			"protocol=joint&from=3&to=5&fault=partition@1:1,2%7C3,4,5&fault=heal@300ms&drop=direct-switch",
			"quoratesim reconfig --protocol joint --from 3 --to 5 --fault 'partition@1:1,2|3,4,5' --fault heal@300ms --break direct-switch"},
		{"fault=leader-restart@1%2B200ms", "protocol=joint&from=3&to=5&fault=leader-restart@1%2B200ms",
			"quoratesim reconfig --protocol joint --from 3 --to 5 --fault leader-restart@1+200ms"},
		{"protocol=activate-switched&from=3&add=1&remove=1&drop=two-changes",
			"protocol=activate-switched&from=3&add=1&remove=1&drop=two-changes",
			"quoratesim reconfig --protocol activate-switched --from 3 --add 1 --remove 1 --break two-changes"},
	} {
		l, err := player.ParseLink(tc.text)
		if err != nil {
			t.Errorf("%q: %v", tc.text, err)
			continue
		}
		if l.String() != tc.want || l.Command() != tc.command {
			t.Errorf("%q: got %q, %q", tc.text, l.String(), l.Command())
		}
		again, err := player.ParseLink(l.String())
		if err != nil || again.String() != l.String() {
			t.Errorf("%q: read again it is %v, %v", l, again, err)
		}
	}
}

// Ensure that a wrong link is refused with a sentence that says what there is, and that nothing is played.
func TestAnswer_badLinks(t *testing.T) {
	for _, tc := range []struct{ link, want string }{
		{"story=cinderella", "two-leaders"},
		{"story=cop&from=3", "does not go with a story"},
		{"rule=kept", "goes with a story"},
		{"story=cop&rule=perhaps", "kept or dropped"},
		{"story=cop&story=abort", "once is enough"},
		{"story=cop&at=99999", "moments 0 to"},
		{"story=cop&at=-1", "number from 0"},
		{"story=cop&at=x", "number from 0"},
		{"protocol=paxos", "joint-early"},
		{"from=many", "number from 0 to 99"},
		{"from=30", "1 to 9"},
		{"from=3&to=3", "nothing to change"},
		{"remove=1,x", "no member"},
		{"fault=flood@1", "leader-crash@WHEN"},
		{"fault=heal@9h", "strikes, and ends, within"},
		{"fault=leader-restart@1%2B200h", "strikes, and ends, within"},
		{strings.Repeat("fault=lag:2&", 17), "at most 16"},
		{"drop=gravity", "union-of-joint"},
		{"fast=yes", "0 or 1"},
		{"seed=-4", "a number up to"},
		{"delay=slow", "25ms"},
		{"delay=11s", "10µs to 10s"},
		{"speed=3", `part "speed"`},
		{"a=%zz", "cannot be read"},
		{strings.Repeat("x", 2001), "at most 2000"},
	} {
		var answer struct{ Error, Title string }
		if err := json.Unmarshal(player.Answer(player.AskPlay, tc.link), &answer); err != nil {
			t.Fatalf("%q: %v", tc.link, err)
		}
		if answer.Title != "" || !strings.Contains(answer.Error, tc.want) {
			t.Errorf("%q: got %q, want %q", tc.link, answer.Error, tc.want)
		}
	}
	for _, question := range []string{"sing", ""} {
		if got := string(player.Answer(question, "")); !strings.Contains(got, "catalog, play and compare") {
			t.Errorf("%q: %s", question, got)
		}
	}
	for _, text := range []string{"change=99&protocol=joint", "change=0&protocol=joint&to=5", "change=0&protocol=paxos", "change=x", "protocol=joint&delay=11s", "%zz"} {
		if got := string(player.Answer(player.AskCompare, text)); !strings.Contains(got, `{"error"`) {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// document is what a page reads of a run.
type document struct {
	Link, Title, Rule, Summary string
	At, Members                int
	Broken                     bool
	Breaches                   []string
	Dropped                    []struct{ Name, Demands string }
	Moments                    []lab.Moment
	Lines                      []lab.Line
	Tape                       lab.Tape
}

func played(t *testing.T, link string) document {
	t.Helper()
	text := player.Answer(player.AskPlay, link)
	if !bytes.Equal(text, player.Answer(player.AskPlay, link)) {
		t.Errorf("%q: two answers differ", link)
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Tape.Frames) == 0 {
		t.Fatalf("%q: %.200s", link, text)
	}
	return doc
}

// Ensure that a story's document has its rule, its moments, and the law that breaks without the rule; and none with it.
func TestAnswer_stories(t *testing.T) {
	for _, s := range lab.Stories() {
		without, with := played(t, "story="+s.Name+"&at=1"), played(t, "story="+s.Name+"&rule=kept")
		if without.At != 1 || without.Link != "story="+s.Name+"&rule=dropped" {
			t.Errorf("%s: moment %d of %q", s.Name, without.At, without.Link)
		}
		if !without.Broken || len(without.Breaches) == 0 || len(without.Dropped) != 1 || without.Dropped[0].Demands != s.Rule {
			t.Errorf("%s without its rule: %v, %v", s.Name, without.Breaches, without.Dropped)
		}
		if with.Broken || len(with.Breaches) > 0 || len(with.Dropped) > 0 || with.Rule != s.Rule {
			t.Errorf("%s with its rule: %v, %v", s.Name, with.Breaches, with.Dropped)
		}
		if len(without.Moments) < 3 || len(with.Moments) < 3 {
			t.Errorf("%s: %d and %d moments", s.Name, len(without.Moments), len(with.Moments))
		}
	}
}

// Ensure that a dropped rule is a switch of any run: the breach is told, with its rule.
func TestAnswer_droppedRule(t *testing.T) {
	const link = "protocol=activate&from=3&to=3&remove=1,2,3"
	if doc := played(t, link); doc.Broken || len(doc.Dropped) > 0 {
		t.Errorf("with all rules: %v", doc.Breaches)
	}
	doc := played(t, link+"&drop=off-before-settled")
	if !doc.Broken || len(doc.Dropped) != 1 || !strings.Contains(doc.Dropped[0].Demands, "switched off only when") {
		t.Errorf("without a rule: %v, %v", doc.Breaches, doc.Dropped)
	}
}

// Ensure that the catalog has everything that a page offers.
func TestAnswer_catalog(t *testing.T) {
	var c struct {
		Protocols, Changes []string
		Experiment         string
		Faults, Stages     []struct{ Form, About string }
		StageNames         []string `json:"stage_names"`
		Rules              []struct{ Name, Demands string }
		Stories            []struct {
			Name, Title, Rule, Drops string
			About, Without           []string
		}
	}
	if err := json.Unmarshal(player.Answer(player.AskCatalog, ""), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Stories) != len(lab.Stories()) || len(c.Changes) != len(lab.Changes()) || len(c.StageNames) != 4 || len(c.Stages) != 5 {
		t.Errorf("%+v", c)
	}
	for _, s := range c.Stories {
		if s.Title == "" || s.Rule == "" || s.Drops == "" || len(s.About) == 0 || len(s.Without) == 0 {
			t.Errorf("%+v", s)
		}
	}
	for _, f := range append(c.Faults, c.Stages...) {
		if f.Form == "" || f.About == "" {
			t.Errorf("%+v", f)
		}
	}
	for _, name := range c.Protocols {
		if _, err := player.ParseLink("protocol=" + name); err != nil {
			t.Error(err)
		}
	}
	for _, rule := range c.Rules {
		if _, err := player.ParseLink("drop=" + rule.Name); err != nil || rule.Demands == "" {
			t.Errorf("%s: %v", rule.Name, err)
		}
	}
}

// Any text is a link or is refused; a link that is written is read again as the same.
func FuzzParseLink(f *testing.F) {
	f.Add("story=cop&rule=kept&at=7")
	f.Add("protocol=joint&from=3&to=5&fault=partition@1:1,2%7C3&drop=two-changes&seed=3&delay=2ms&fast=1")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := player.ParseLink(text)
		if err != nil {
			return
		}
		written := l.String()
		again, err := player.ParseLink(written)
		if err != nil || again.String() != written {
			t.Errorf("%q is written as %q, which is %v, %v", text, written, again, err)
		}
	})
}
