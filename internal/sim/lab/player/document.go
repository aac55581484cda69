package player

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/sim/lab"
)

// The questions that a player asks.
const (
	AskCatalog = "catalog" // the choices; the argument is empty
	AskPlay    = "play"    // a run; the argument is a link
	AskCompare = "compare" // a standard change; the argument is "change=0&protocol=joint&seed=1&delay=1ms"
)

// Answer answers a question of a player as JSON. An answer with "error" has a sentence about what is wrong with the question.
func Answer(question, argument string) []byte {
	var answer any
	var err error
	switch question {
	case AskCatalog:
		answer = catalog()
	case AskPlay:
		answer, err = play(argument)
	case AskCompare:
		answer, err = compare(argument)
	default:
		err = fmt.Errorf("no question %q: there are %s, %s and %s", question, AskCatalog, AskPlay, AskCompare)
	}
	if err != nil {
		answer = map[string]string{"error": err.Error()}
	}
	return encoded(answer)
}

// Play returns the document of the run that a link names, as Answer does, or an error with the same sentence.
func Play(link string) ([]byte, error) {
	doc, err := play(link)
	if err != nil {
		return nil, err
	}
	return encoded(doc), nil
}

func encoded(answer any) []byte {
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err) // documents have numbers and texts alone
	}
	return text
}

// rule is a rule that can be dropped.
type rule struct {
	Name    string `json:"name"`
	Demands string `json:"demands"`
}

// story is a story in a list.
type story struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	About   []string `json:"about"`
	Rule    string   `json:"rule"`
	Drops   string   `json:"drops"`   // the name of the rule
	Without []string `json:"without"` // what may happen without it
}

// choices are what a run can be made of.
type choices struct {
	Protocols  []string `json:"protocols"`
	Experiment string   `json:"experiment"` // which of them no cluster runs
	Faults     []form   `json:"faults"`
	Stages     []form   `json:"stages"`
	StageNames []string `json:"stage_names"`
	Rules      []rule   `json:"rules"`
	Stories    []story  `json:"stories"`
	Changes    []string `json:"changes"`
	Compared   []string `json:"compared"` // protocols
}

// form is a form of a fault, or of its time, with its sentence.
type form struct {
	Form  string `json:"form"`
	About string `json:"about"`
}

// forms reads a help text: a form and a sentence on each line.
func forms(help string) []form {
	var all []form
	for line := range strings.Lines(help) {
		head, about, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, form{head, strings.TrimSpace(about)})
	}
	return all
}

func catalog() *choices {
	c := &choices{
		Protocols: lab.ProtocolNames(), Experiment: lab.ProtocolSwitched, Faults: forms(lab.FaultHelp),
		Stages:     forms(lab.StageHelp),
		StageNames: lab.StageNames[:], Changes: lab.Changes(), Compared: lab.Compared(),
	}
	for _, b := range lab.Breaks() {
		if b.Name != lab.ProtocolSwitched { // that is a protocol
			c.Rules = append(c.Rules, rule{b.Name, b.Demands})
		}
	}
	for _, s := range lab.Stories() {
		one := story{Name: s.Name, Title: s.Title, About: s.About, Rule: s.Rule, Drops: s.Break}
		for _, breach := range s.Expect {
			one.Without = append(one.Without, string(breach))
		}
		c.Stories = append(c.Stories, one)
	}
	return c
}

// run is the document of a run.
type run struct {
	Link     string       `json:"link"`    // without a moment
	Command  string       `json:"command"` // that plays it natively
	At       int          `json:"at"`
	Title    string       `json:"title"`
	About    []string     `json:"about"`
	Story    string       `json:"story,omitempty"`
	Rule     string       `json:"rule,omitempty"` // of the story
	Kept     bool         `json:"kept,omitempty"`
	Dropped  []rule       `json:"dropped,omitempty"`
	Members  int          `json:"members"`
	Delay    int64        `json:"delay"` // of a link, in nanoseconds
	Lines    []lab.Line   `json:"lines"`
	Moments  []lab.Moment `json:"moments,omitempty"`
	Broken   bool         `json:"broken"`
	Breaches []string     `json:"breaches,omitempty"`
	Summary  string       `json:"summary"`
	Tape     *lab.Tape    `json:"tape"`
}

// play plays the run that a link names.
func play(text string) (*run, error) {
	l, err := ParseLink(text)
	if err != nil {
		return nil, err
	}
	doc := &run{At: l.At, Command: l.Command(), Delay: int64(time.Millisecond)}
	l.At = 0
	doc.Link = l.String()
	var r *lab.Report
	if l.Story != "" {
		r, err = doc.tell(l)
	} else {
		r, err = lab.Run(l.Options)
		if l.Options.Delay > 0 {
			doc.Delay = int64(l.Options.Delay)
		}
		_, drops := l.protocol()
		doc.drop(drops...)
	}
	if err != nil {
		return nil, err
	}
	if last := len(r.Tape.Frames) - 1; doc.At > last {
		return nil, fmt.Errorf("the link shows moment %d, and this run has moments 0 to %d", doc.At, last)
	}
	var summary strings.Builder
	if err := r.Summary(&summary); err != nil {
		return nil, err
	}
	doc.Title, doc.About, doc.Members, doc.Lines, doc.Tape = r.Title, r.About, r.Members, r.Lines(), r.Tape
	doc.Broken, doc.Summary = r.Broken(), summary.String()
	for _, v := range r.Violations {
		doc.Breaches = append(doc.Breaches, v.String())
	}
	for _, v := range r.Laws {
		if len(r.Violations) == 0 {
			doc.Breaches = append(doc.Breaches, v.Property+": "+v.Detail)
		}
	}
	return doc, nil
}

// tell plays a story.
func (doc *run) tell(l *Link) (*lab.Report, error) {
	s, err := lab.FindStory(l.Story)
	if err != nil {
		return nil, err
	}
	r, err := s.Record(l.Kept)
	if err != nil {
		return nil, err
	}
	doc.Story, doc.Rule, doc.Kept = s.Name, s.Rule, l.Kept
	if !l.Kept {
		doc.Dropped = []rule{{s.Break, s.Rule}}
	}
	doc.Moments = s.Moments(r, l.Kept)
	return r, nil
}

// drop notes rules that a run drops.
func (doc *run) drop(names ...string) {
	for _, b := range lab.Breaks() {
		for _, name := range names {
			if b.Name == name {
				doc.Dropped = append(doc.Dropped, rule{b.Name, b.Demands})
			}
		}
	}
}

// comparison is the document of a comparison by one change and one protocol.
type comparison struct {
	Change string    `json:"change"`
	Up     lab.Trial `json:"up"`
	Dead   lab.Trial `json:"dead"` // the same while a voter that stays is dead
}

func compare(text string) (*comparison, error) {
	parts, err := url.ParseQuery(text)
	if err != nil {
		return nil, fmt.Errorf("the comparison cannot be read: %w", err)
	}
	l := &Link{}
	change := 0
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		switch values := parts[name]; name {
		case "change":
			if change, err = number(name, values[0], len(lab.Changes())-1); err != nil {
				return nil, err
			}
		case partProtocol, partSeed, partDelay:
			if err := l.take(name, values); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("a comparison has change, protocol, seed and delay, and no %q", name)
		}
	}
	protocol, _ := l.protocol()
	trials, err := lab.CompareOne(change, protocol, l.Options.Seed, l.Options.Delay)
	if err != nil {
		return nil, err
	}
	return &comparison{Change: lab.Changes()[change], Up: trials[0], Dead: trials[1]}, nil
}
