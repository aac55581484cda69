// Command quoratemutate changes the code by machine and lists the changes that no test and no seed notices: see
// docs/mutants.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = `quoratemutate changes the code by machine, one small change at a time, and lists the changes that survive.

  quoratemutate [flags]       in the root of the repository

Each mutant meets the quick tests of its package and of its neighbours, then all of their tests, then seeds of the
simulator, until one of them fails.
The tree is never written to: the go command reads the changed file in the place of the real one (-overlay).

`

// mutated are the packages whose defects cost most.
const mutated = "internal/consensus/...,internal/member/node,internal/member/proposals,internal/member/offers," +
	"internal/member/logwriter,internal/identity"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// start returns the exit code: 0 each mutant was killed, 1 one survived, 2 the command makes no sense or could not finish.
func start(ctx context.Context, args []string, out, diary io.Writer) int {
	survivors, err := mutate(ctx, args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(diary, "quoratemutate:", err)
		return 2
	case survivors > 0:
		return 1
	}
	return 0
}

func mutate(ctx context.Context, args []string, out io.Writer) (survivors int, err error) {
	c := campaign{lab: laboratory{root: ".", neighbours: neighbours}}
	flags := flag.NewFlagSet("quoratemutate", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	packages := flags.String("packages", mutated, "the `folders` to mutate, with commas between; /... is what is below, too")
	seed := flags.Uint64("seed", 1, "the `number` that decides which mutants are tried, and in which order")
	flags.IntVar(&c.sample, "sample", 30, "`number` of mutants that compile")
	flags.DurationVar(&c.lab.limit, "for", time.Minute,
		"`time` after which tests that are not over have killed, or 3 times what they take without a mutant")
	flags.DurationVar(&c.lab.simulate, "simulate", 10*time.Second, "`time` of seeds against what the tests let live; 0: none")
	flags.IntVar(&c.workers, "workers", 1, "`number` of mutants at once")
	place := flags.String("at", "", "only the mutants of this `place`, a file or file:line, and all of them")
	flags.BoolVar(&c.lab.quick, "quick", false,
		"the quick tests alone; what survives them is tried again by the same command without this, and with --results")
	kept := flags.String("results", "", "`file` to which each result is added at once; what it has already is not tried again")
	list := flags.Bool("list", false, "list the mutations in the order of the seed, and try none")
	asJSON := flags.Bool("json", false, "print one JSON document at the end, instead of lines")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			help(flags, out)
		}
		return 0, err
	}
	switch {
	case flags.NArg() > 0:
		return 0, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case c.sample < 1 || c.workers < 1:
		return 0, errors.New("--sample and --workers must be at least 1")
	case c.lab.limit <= 0 || c.lab.simulate < 0:
		return 0, errors.New("--for must be more than zero, and --simulate not less")
	}
	if c.order, err = mutations(c.lab.root, strings.Split(*packages, ",")); err != nil {
		return 0, err
	}
	if *place != "" {
		if c.order = at(c.order, *place); len(c.order) == 0 {
			return 0, fmt.Errorf("--at %s: nothing can be mutated there; it must be a file of --packages, or file:line", *place)
		}
		c.sample = len(c.order)
	}
	shuffle(c.order, *seed)
	if *list {
		for i := range c.order {
			fmt.Fprintf(out, "%4d %s: %s: %s\n", i+1, c.order[i].place(), c.order[i].Kind, c.order[i].Change)
		}
		return 0, nil
	}
	if !*asJSON {
		c.out = out
	}
	if *kept != "" {
		if c.journal, err = openJournal(*kept, c.order); err != nil {
			return 0, err
		}
	}
	err = errors.Join(c.run(ctx), c.journal.close())
	s := c.summary(*seed)
	if *asJSON {
		return s.Survived, errors.Join(err, s.printJSON(out))
	}
	s.print(out)
	return s.Survived, err
}

// neighbours are the packages whose tests look at another package, too, those that say most in the least time first.
func neighbours(dir string) []string {
	switch dir {
	case "internal/consensus/raft":
		return []string{"internal/member/node"}
	case "internal/member/proposals", "internal/member/offers":
		return []string{"internal/member/node", "internal/member/clients", "internal/member"}
	case "internal/member/node", "internal/member/logwriter":
		return []string{"internal/member"}
	case "internal/identity":
		return []string{"internal/member/epoch", "internal/member/datadir", "internal/transport", "internal/member"}
	}
	if strings.HasPrefix(dir, "internal/consensus") {
		return []string{"internal/consensus/raft"}
	}
	return nil
}

// help prints the flags.
func help(flags *flag.FlagSet, out io.Writer) {
	fmt.Fprint(out, usage)
	flags.VisitAll(func(f *flag.Flag) {
		name, about := flag.UnquoteUsage(f)
		fmt.Fprintf(out, "  --%-16s %s\n", strings.TrimSpace(f.Name+" "+name), about)
	})
}
