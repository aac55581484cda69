package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/lab"
)

const reconfigUsage = `quoratesim reconfig plays one membership change in a small cluster, in virtual time,
and draws what happens.

  quoratesim reconfig --protocol joint --from 3 --to 5
  quoratesim reconfig --protocol activate --from 3 --to 3 --remove 1,2,3 --fault leader-crash@2
  quoratesim reconfig --protocol single --from 5 --to 4 --remove 1 --svg remove.svg
  quoratesim reconfig --from 3 --to 5 --fault 'partition@1:1,2|3,4,5' --fault heal@300ms --delay 20ms
  quoratesim reconfig --compare                      # the standard changes by every protocol, as a table
  quoratesim reconfig --from 4 --to 5 --fast         # clients offer their writes on the fast path meanwhile
  quoratesim reconfig --list                         # the stories: known disasters, and the rules that prevent them
  quoratesim reconfig --story two-leaders            # one of them, without its rule
  quoratesim reconfig --story two-leaders --safe     # and with it
  quoratesim reconfig --break direct-switch          # the stories of a rule that is dropped
  quoratesim reconfig --story all --quiet            # all of them, only the results

The cluster has members 1 to FROM, led by 1. New members are learners that have caught up when the chart begins. The
exit code is 0 if all laws held, 1 if one was broken, 2 if the command makes no sense; of a story it is 0 if it went
as it should.

`

// reconfigCommand is what the flags of reconfig say.
type reconfigCommand struct {
	options        lab.Options
	story          string
	svg, svgDir    string
	safe, compare  bool
	list           bool
	quiet, verbose bool
	out            io.Writer
	set            map[string]bool
}

func runReconfig(args []string, out io.Writer) (violated bool, err error) {
	c := reconfigCommand{out: out, set: map[string]bool{}}
	flags := c.flags()
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			reconfigHelp(flags, out)
		}
		return false, err
	}
	flags.Visit(func(f *flag.Flag) { c.set[f.Name] = true })
	switch {
	case flags.NArg() > 0:
		return false, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case c.quiet && c.verbose:
		return false, errors.New("--quiet and --verbose exclude each other")
	case c.list:
		return false, c.listStories()
	case c.story != "":
		return c.tell(lab.Stories())
	case c.breaksAlone():
		return c.tell(lab.StoriesOf(c.options.Breaks))
	case c.compare:
		return c.compareAll()
	case c.safe || c.svgDir != "":
		return false, errors.New("--safe and --svg-dir need --story")
	}
	if !c.set["to"] && !c.set["add"] && !c.set["remove"] && !c.set["demote"] {
		c.options.To = 5
	}
	report, err := lab.Run(c.options)
	if err != nil {
		return false, err
	}
	return report.Broken(), c.show(report, c.svg)
}

func (c *reconfigCommand) flags() *flag.FlagSet {
	o := &c.options
	flags := newFlags("reconfig")
	names := strings.Join(lab.ProtocolNames(), ", ")
	flags.Func("protocol", "`name` of the protocol: "+names+", the last an experiment", func(name string) error {
		if !o.SetProtocol(name) {
			return fmt.Errorf("there are %s", names)
		}
		return nil
	})
	flags.IntVar(&o.From, "from", 3, "`number` of voters before")
	flags.IntVar(&o.To, "to", 0, "`number` of voters afterwards; the highest leave unless --remove names others")
	flags.IntVar(&o.Add, "add", 0, "`number` of new voters")
	flags.Func("remove", "`members` to remove, like 1,2", members(&o.Remove))
	flags.Func("demote", "`members` to make learners", members(&o.Demote))
	flags.Func("fault", "what goes wrong: see below; may be given several times (`what@when`)", func(text string) error {
		fault, err := lab.ParseFault(text)
		o.Faults = append(o.Faults, fault)
		return err
	})
	flags.Func("break", "switch a `rule` off: see below; may be given several times", func(name string) error {
		o.Breaks = append(o.Breaks, name)
		return lab.CheckBreak(name)
	})
	flags.Uint64Var(&o.Seed, "seed", 1, "`number` that all chance is drawn from")
	flags.DurationVar(&o.Delay, "delay", 0, "`time` that a message takes, 1ms unless given")
	flags.StringVar(&c.story, "story", "", "play this script: `name` from the list below, or all")
	flags.BoolVar(&c.list, "list", false, "list the stories, with their rules")
	flags.BoolVar(&o.Fast, "fast", false, "clients offer their writes to all voters at once, on the fast path")
	flags.BoolVar(&c.compare, "compare", false, "play the standard changes by every protocol, as a table")
	flags.BoolVar(&c.safe, "safe", false, "play the story with its rule in force")
	flags.StringVar(&c.svg, "svg", "", "write the chart as a picture to this `file`, too")
	flags.StringVar(&c.svgDir, "svg-dir", "", "write the pictures of stories to this `directory`, with the rule and without")
	flags.BoolVar(&c.quiet, "quiet", false, "print the result only")
	flags.BoolVar(&c.verbose, "verbose", false, "draw every message")
	return flags
}

func members(into *[]consensus.MemberID) func(string) error {
	return func(text string) (err error) {
		*into, err = lab.ParseMembers(text)
		return err
	}
}

func reconfigHelp(flags *flag.FlagSet, out io.Writer) {
	fmt.Fprint(out, reconfigUsage)
	flags.VisitAll(func(f *flag.Flag) {
		name, about := flag.UnquoteUsage(f)
		fmt.Fprintf(out, "  --%-20s %s\n", strings.TrimSpace(f.Name+" "+name), about)
	})
	section := func(title, text string) {
		fmt.Fprintf(out, "\n%s\n", title)
		for line := range strings.Lines(text) {
			fmt.Fprint(out, "  "+line)
		}
	}
	section("Faults:", lab.FaultHelp)
	section("WHEN is a stage of the change, or a time:", lab.StageHelp)
	fmt.Fprintln(out, "\nRules to --break:")
	for _, b := range lab.Breaks() {
		fmt.Fprintf(out, "  %-20s %s\n", b.Name, b.Demands)
	}
	fmt.Fprintln(out, "\nStories:")
	for _, s := range lab.Stories() {
		fmt.Fprintf(out, "  %-30s %s\n", s.Name, s.Title)
	}
}

// listStories says of each story what it is about, which rule prevents its end, and how to play it.
func (c *reconfigCommand) listStories() error {
	for name := range c.set {
		if name != "list" {
			return fmt.Errorf("--%s does not go with --list", name)
		}
	}
	for i, s := range lab.Stories() {
		if i > 0 {
			fmt.Fprintln(c.out)
		}
		fmt.Fprintf(c.out, "%s: %s\n  without  quoratesim reconfig --story %s\n", s.Name, s.Title, s.Name)
		for _, breach := range s.Expect {
			fmt.Fprintf(c.out, "             %s\n", breach)
		}
		fmt.Fprintf(c.out, "  with     quoratesim reconfig --story %s --safe\n             %s\n", s.Name, s.Rule)
	}
	return nil
}

// breaksAlone reports whether rules are dropped, no change is described, and there are stories of them.
func (c *reconfigCommand) breaksAlone() bool {
	for name := range c.set {
		switch name {
		case "break", "safe", "quiet", "verbose", "svg", "svg-dir":
		default:
			return false
		}
	}
	return len(lab.StoriesOf(c.options.Breaks)) > 0
}

// show prints a report, and draws it.
func (c *reconfigCommand) show(r *lab.Report, svg string) error {
	if c.quiet {
		if err := r.Summary(c.out); err != nil {
			return err
		}
	} else if err := r.Chart(c.out, c.verbose); err != nil {
		return err
	}
	if svg == "" {
		return nil
	}
	return draw(r, svg)
}

// compareAll plays the standard changes by every protocol.
func (c *reconfigCommand) compareAll() (violated bool, err error) {
	for name := range c.set {
		if name != "compare" && name != "svg" && name != "seed" && name != "delay" {
			return false, fmt.Errorf("--%s: a comparison has its own changes; only --seed, --delay and --svg go with it", name)
		}
	}
	trials, err := lab.Compare(c.options.Seed, c.options.Delay)
	if err != nil {
		return false, err
	}
	for i := range trials {
		violated = violated || trials[i].Broken > 0
	}
	if err := lab.WriteTable(c.out, trials); err != nil || c.svg == "" {
		return violated, err
	}
	var picture strings.Builder
	if err := lab.Picture(&picture, trials); err != nil {
		return violated, err
	}
	return violated, os.WriteFile(c.svg, []byte(picture.String()), 0o644)
}

// tell plays stories, or the one that is named.
func (c *reconfigCommand) tell(stories []lab.Story) (wrong bool, err error) {
	for _, name := range []string{
		"protocol", "from", "to", "add", "remove", "demote", "fault", "break", "seed", "delay", "fast", "compare",
	} {
		if c.set[name] && c.story != "" {
			return false, fmt.Errorf("--%s: a story is a script of its own; only --safe changes it", name)
		}
	}
	if c.story != "" && c.story != "all" {
		story, err := lab.FindStory(c.story)
		if err != nil {
			return false, err
		}
		stories = []lab.Story{story}
	}
	if len(stories) > 1 && c.svg != "" {
		return false, errors.New("--svg names one file: use --svg-dir for several stories")
	}
	for i, story := range stories {
		if i > 0 {
			fmt.Fprintln(c.out)
		}
		kept, err := c.play(&story)
		if err != nil {
			return false, err
		}
		wrong = wrong || !kept
	}
	return wrong, nil
}

// play tells a story as asked for, and says in a line how it would have ended otherwise.
func (c *reconfigCommand) play(story *lab.Story) (kept bool, err error) {
	kept = true
	for _, safe := range []bool{c.safe, !c.safe} {
		report, err := story.Play(safe)
		if err != nil {
			return false, err
		}
		kept = kept && story.Kept(report, safe)
		if safe == c.safe {
			err = c.show(report, c.svg)
		} else {
			c.otherwise(story, report, safe)
		}
		if err == nil && c.svgDir != "" {
			err = draw(report, filepath.Join(c.svgDir, story.Name+map[bool]string{true: "-safe", false: ""}[safe]+".svg"))
		}
		if err != nil {
			return false, err
		}
	}
	return kept, nil
}

func (c *reconfigCommand) otherwise(story *lab.Story, r *lab.Report, safe bool) {
	switch {
	case !safe:
		fmt.Fprintf(c.out, "\nWithout the rule (leave out --safe): %d violations.\n", len(r.Violations))
	case !r.Broken():
		fmt.Fprintf(c.out, "\nWith the rule (--safe shows it): no violation.\nThe rule: %s.\n", story.Rule)
	case len(r.Violations) == 0:
		fmt.Fprintf(c.out, "\nEven with the rule: %v\n", r.Laws[0])
	default:
		fmt.Fprintf(c.out, "\nEven with the rule: %v\n", r.Violations[0])
	}
}

func draw(r *lab.Report, file string) error {
	var picture strings.Builder
	if err := r.SVG(&picture); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(picture.String()), 0o644)
}
