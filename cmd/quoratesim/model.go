package main

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/model/explore"
	"github.com/quorate/quorate/internal/model/joint"
)

const modelUsage = `quoratesim model explores a model of the protocol, step by step, and checks its laws.

  quoratesim model walk     random walks with every rule on
  quoratesim model search   breadth first through a small bound
  quoratesim model change   every state of one change of several voters, by one protocol
  quoratesim model mutate   drops one rule after the other and looks for a broken law
  quoratesim model mutate --only read-leader-index    one row of the table, with the trace

The exit code is 0 if every law held and every mutation did what the table says, 1 if not, 2 if the command makes no
sense.

`

// modelCommand is what the flags of model say.
type modelCommand struct {
	out      io.Writer
	walk     explore.WalkOptions
	clusters string
	bound    string
	states   int
	only     string
	quiet    bool
	change   joint.Search
	old, new string
}

func runModel(args []string, out io.Writer) (broken bool, err error) {
	c := modelCommand{out: out}
	verb, args := cutVerb(args)
	if err := parseFlags(c.flags(), args, modelUsage, out); err != nil {
		return false, err
	}
	if c.clusters != "" {
		c.walk.Clusters = strings.Split(c.clusters, ",")
	}
	switch verb {
	case "walk":
		return c.runWalk()
	case "search":
		return c.runSearch()
	case "change":
		return c.runChange()
	case "mutate":
		return c.runMutate()
	}
	return false, fmt.Errorf("model %q: there are model walk, model search, model change and model mutate", verb)
}

func (c *modelCommand) flags() *flag.FlagSet {
	flags := newFlags("model")
	flags.Uint64Var(&c.walk.Seed, "seed", 1, "`number` that decides every walk")
	flags.DurationVar(&c.walk.Time, "for", 30*time.Second, "how long to walk or search, in real `time`; mutate: for each rule")
	flags.Uint64Var(&c.walk.First, "first", 0, "walk: `number` of the first walk")
	flags.Uint64Var(&c.walk.Walks, "walks", 0, "walk: how many; 0 until the time is over")
	flags.IntVar(&c.walk.Length, "length", 70, "walk: mean `number` of steps")
	flags.StringVar(&c.clusters, "clusters", "",
		"walk: `names` with commas between, of "+strings.Join(explore.Scenarios(), ", "))
	flags.StringVar(&c.walk.Profile, "profile", "", "walk: kind of walk, of "+strings.Join(explore.Profiles(), ", "))
	flags.StringVar(&c.bound, "bound", "least", "search: `name` of the bound, of "+strings.Join(explore.Bounds(), ", "))
	flags.IntVar(&c.states, "states", 6_000_000, "search: most `number` of states; a million takes about 1 GB")
	flags.StringVar((*string)(&c.change.Protocol), "protocol", string(joint.JointEarly),
		"change: `name` of the protocol: joint, joint-early, activate, apply, the wrong one, direct, or the experiments "+
			"activate-switched, activate-switched-new, activate-switched-told (ADR 63)")
	flags.BoolVar(&c.change.SwitchOff, "switch-off", false,
		"change: who leaves by activate, or an experiment, is switched off, and others must be able to elect a leader")
	flags.BoolVar(&c.change.OnlyVotersStand, "only-voters-stand", false,
		"change: a member that is no voter by its own log is no candidate, not even if others need its log (ADR 66)")
	flags.BoolVar(&c.change.Alive, "alive", false,
		"change: most of the old with most of the new voters must be able to elect a leader at any time")
	flags.StringVar((*string)(&c.change.Back), "back", string(joint.Committed),
		"change: which leader may take a change back: none, committed (what ships), any-leader, unseen, old-elects")
	flags.StringVar(&c.old, "from", "0,1,2", "change: `numbers` of the old voters; 0 leads term 1")
	flags.StringVar(&c.new, "to", "0,1,3", "change: `numbers` of the new voters, of 0 to 4")
	flags.IntVar(&c.change.Campaigns, "candidacies", 1, "change: `number` of candidacies after term 1, 3 at most")
	flags.StringVar(&c.only, "only", "", "mutate: only rows whose name contains `text`")
	flags.BoolVar(&c.quiet, "quiet", false, "mutate: no traces")
	return flags
}

func (c *modelCommand) runWalk() (broken bool, err error) {
	f, st, err := explore.Walk(c.walk)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(c.out, "seed %d: %+v\n", c.walk.Seed, st)
	return c.judge(f), nil
}

func (c *modelCommand) runSearch() (broken bool, err error) {
	f, res, err := explore.Search(c.bound, rules.Set{}, c.states, c.walk.Time)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(c.out, "bound %s: %s depth %d, %d states, %d transitions, %v\n", c.bound, reach(res.Complete),
		res.Depth, res.States, res.Transitions, res.Elapsed.Round(time.Second))
	return c.judge(f), nil
}

func (c *modelCommand) runChange() (broken bool, err error) {
	c.change.States, c.change.Limit = c.states, c.walk.Time
	for _, set := range []struct {
		text   string
		voters *[]int
	}{{c.old, &c.change.Old}, {c.new, &c.change.New}} {
		for _, text := range strings.Split(set.text, ",") {
			voter, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				return false, fmt.Errorf("voters %q: they are numbers with commas between, such as 0,1,3", set.text)
			}
			*set.voters = append(*set.voters, voter)
		}
	}
	r, err := joint.Run(c.change)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(c.out, "%s, way back %s, %s to %s, %d candidacies: %v\n", c.change.Protocol, c.change.Back, c.old, c.new,
		c.change.Campaigns, r)
	return r.Broken != "", nil
}

func (c *modelCommand) judge(f *explore.Finding) (broken bool) {
	if f == nil {
		fmt.Fprintln(c.out, "no law broken")
		return false
	}
	f.Print(c.out)
	return true
}

func (c *modelCommand) runMutate() (broken bool, err error) {
	rows := 0
	for _, mu := range explore.Mutations() {
		if !strings.Contains(mu.Dropped(), c.only) {
			continue
		}
		rows++
		f, st, err := mu.Try(c.walk.Seed, c.walk.Time)
		if err != nil {
			return false, err
		}
		verdict, seen := "holds", mu.Why
		if f != nil {
			verdict, seen = "BREAKS", fmt.Sprintf("%s; cluster %s, %d steps, walk %d", f.Law(), f.Cluster(), f.Steps(), f.Walk)
		}
		if (f != nil) != mu.Breaks {
			broken = true
			verdict = "UNEXPECTED: " + verdict
		}
		fmt.Fprintf(c.out, "%-66s %-7s %s (%d walks, %v)\n", mu.Dropped(), verdict, seen, st.Walks,
			st.Elapsed.Round(100*time.Millisecond))
		if f != nil && !c.quiet {
			f.Print(c.out)
		}
	}
	if rows == 0 {
		return false, fmt.Errorf("no mutation's name contains %q", c.only)
	}
	return broken, nil
}
