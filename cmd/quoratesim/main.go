// Command quoratesim runs simulated clusters under faults and checks that nothing is lost: see docs/simulation.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/sim"
	"github.com/quorate/quorate/internal/sim/stores"
)

const usage = `quoratesim runs whole clusters in virtual time, under every fault that we can name, and checks the laws.

  quoratesim run [flags]      run seeds until the time is over; with --seed, that one
  quoratesim replay [flags]   run one seed and print its trace
  quoratesim list             list the faults
  quoratesim reconfig [flags] play one membership change, with faults, and draw it
  quoratesim lab --out DIR    write the laboratory for a browser: the same as a page, to look at and to play
  quoratesim model [flags]    explore a model of the protocol, and drop its rules one by one
  quoratesim operators [flags] explore what operators ask of a cluster's members, and drop the rules one by one
  quoratesim fixes [flags]    drop again what was fixed after reviews, and show which checker finds it
  quoratesim check-trace FILE check what replay --actions FILE wrote against the specification in spec/

`

func main() {
	os.Exit(start(os.Args[1:], os.Stdout, os.Stderr))
}

// start returns the exit code: 0 all laws held, 1 one was broken, 2 the command makes no sense.
func start(args []string, out, diary io.Writer) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		fmt.Fprint(out, usage)
		if len(args) == 0 {
			return 2
		}
		return 0
	}
	var err error
	switch command := args[0]; command {
	case "list":
		list(out)
		return 0
	case "run", "replay":
		var violated bool
		if violated, err = runCommand(command, args[1:], out, diary); violated {
			return 1
		}
	case "check-trace":
		var refused bool
		if refused, err = checkTrace(args[1:], out); refused {
			return 1
		}
	case "lab":
		err = runLab(args[1:], out)
	case "model", "fixes", "operators", "reconfig":
		explore := map[string]func([]string, io.Writer) (bool, error){
			"model": runModel, "fixes": runFixes, "operators": runOperators, "reconfig": runReconfig}[command]
		var broken bool
		if broken, err = explore(args[1:], out); broken && err == nil {
			return 1
		}
	default:
		err = fmt.Errorf("unknown command %q: there are run, replay, list, reconfig, lab, model, operators, fixes "+
			"and check-trace",
			command)
	}
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(diary, "quoratesim:", err)
		return 2
	}
	return 0
}

// help prints the flags, but for the one that breaks laws.
func help(flags *flag.FlagSet, out io.Writer) {
	fmt.Fprint(out, usage)
	flags.VisitAll(func(f *flag.Flag) {
		if name, about := flag.UnquoteUsage(f); about != "" {
			fmt.Fprintf(out, "  --%-20s %s\n", strings.TrimSpace(f.Name+" "+name), about)
		}
	})
}

func list(out io.Writer) {
	for _, n := range sim.Nemeses() {
		fmt.Fprintf(out, "%-14s %s\n", n.Name, n.About)
	}
}

func runCommand(command string, args []string, out, diary io.Writer) (violated bool, err error) {
	c := campaign{out: out, diary: diary}
	flags := newFlags(command)
	seeded := false
	flags.Func("seed", "run this seed `number` only (run: unless --for is given too, then from it on)",
		func(text string) error {
			seeded = true
			_, err := fmt.Sscanf(text, "%v", &c.options.Seed)
			return err
		})
	flags.DurationVar(&c.budget, "for", 0, "how long to run seeds, in real `time`")
	flags.StringVar(&c.options.Nemesis, "nemesis", "", "only these faults (`names` from list with commas between, all or none)")
	flags.StringVar(&c.options.Protocol, "protocol", "", "all membership changes by this `protocol` (drawn if empty)")
	flags.StringVar(&c.options.Load, "load", "", "`reads`: mostly linearizable reads, on few keys (drawn if empty)")
	flags.StringVar(&c.options.Engine, "engine", stores.Memory, "`name` of the stores' engine: memory, or pebble, the real one")
	flags.BoolVar(&c.options.Encrypts, "encrypts", false, "encrypt the disks of all machines")
	flags.IntVar(&c.options.Members, "members", 0, "`number` of members at the start, 1 to 7 (drawn if 0)")
	flags.DurationVar(&c.options.Duration, "faults", 0, "virtual `time` of the phase with faults (drawn if 0)")
	flags.IntVar(&c.workers, "workers", 1, "`number` of seeds at once")
	flags.StringVar(&c.options.Break, "break", "", "") // negative controls: docs/simulation.md
	trace := flags.Bool("trace", command == "replay", "print every event")
	actions := flags.String("actions", "", "replay: write what the cores do to this `file`, for check-trace, instead of events")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			help(flags, out)
		}
		return false, err
	}
	if !seeded {
		c.options.Seed = uint64(time.Now().UnixNano())
	}
	c.one = seeded && c.budget == 0
	if *trace {
		c.options.Trace = out
	}
	switch {
	case flags.NArg() > 0:
		return false, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case command == "replay" && !c.one:
		return false, errors.New("replay needs --seed and runs it once: leave out --for")
	case c.options.Members < 0 || c.options.Members > 7:
		return false, fmt.Errorf("--members %d: it must be 1 to 7, or 0 to draw it", c.options.Members)
	case c.workers < 1 || c.workers > 256:
		return false, fmt.Errorf("--workers %d: it must be 1 to 256", c.workers)
	case c.budget < 0 || c.options.Duration < 0:
		return false, errors.New("--for and --faults must not be negative")
	case *actions != "" && command != "replay":
		return false, errors.New("--actions needs replay")
	case *trace && !c.one:
		return false, errors.New("--trace needs --seed without --for: one run, one trace")
	}
	if !c.one && c.budget == 0 {
		c.budget = time.Minute
	}
	if *actions != "" {
		return c.writeActions(*actions)
	}
	return c.run()
}
