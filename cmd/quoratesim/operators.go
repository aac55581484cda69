package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/membership/operators"
)

const operatorsUsage = `quoratesim operators explores what operators, and processes that join, ask of a cluster's members: the
real planner, in a cluster where all else happens at once.

  quoratesim operators explore   every sequence of moves with every rule on, the shortest first
  quoratesim operators mutate    drops one rule after the other and looks for a broken law

The exit code is 0 if every law held and every mutation did what the table says, 1 if not, 2 if the command makes no
sense.

`

func runOperators(args []string, out io.Writer) (broken bool, err error) {
	verb, args := cutVerb(args)
	flags := newFlags("operators")
	limit := flags.Duration("for", time.Minute, "how long to explore, in real `time`; mutate: for each rule")
	voters := flags.Int("voters", 3, "explore: `number` of voters at first, 3 to 7")
	depth := flags.Int("depth", 0, "explore: most `number` of moves; 0 until the time is over")
	only := flags.String("only", "", "mutate: only rows whose name contains `text`")
	if err := parseFlags(flags, args, operatorsUsage, out); err != nil {
		return false, err
	}
	switch {
	case *voters < 3 || *voters > 7:
		return false, fmt.Errorf("--voters %d: it must be 3 to 7", *voters)
	case verb == "explore":
		f, res := operators.Explore(operators.Options{Voters: *voters, Depth: *depth, Time: *limit})
		printOperators(out, f, res)
		return f != nil, nil
	case verb == "mutate":
		return mutateOperators(*only, *limit, out)
	}
	return false, fmt.Errorf("operators %q: there are operators explore and operators mutate", verb)
}

func printOperators(out io.Writer, f *operators.Finding, res operators.Result) {
	fmt.Fprintf(out, "%s depth %d, %d states, %d moves, %v\n", reach(res.Complete), res.Depth, res.States, res.Moves,
		res.Elapsed.Round(time.Millisecond))
	if f == nil {
		fmt.Fprintln(out, "no law broken")
		return
	}
	fmt.Fprintln(out, "BROKEN", f.Broken)
	for i, move := range f.Moves {
		fmt.Fprintf(out, "%3d  %s\n", i+1, move)
	}
}

func mutateOperators(only string, limit time.Duration, out io.Writer) (broken bool, err error) {
	rows := 0
	for _, mu := range operators.Mutations() {
		if !strings.Contains(mu.Name, only) {
			continue
		}
		rows++
		f, res := mu.Try(limit)
		found := ""
		if f != nil {
			found = f.Law()
		}
		verdict := map[bool]string{true: "BREAKS", false: "holds"}[f != nil]
		if found != mu.Law {
			broken, verdict = true, "UNEXPECTED: "+verdict
		}
		fmt.Fprintf(out, "%-48s %s %s%s\n", mu.Name, verdict, found, mu.Why)
		printOperators(out, f, res)
	}
	if rows == 0 {
		return false, fmt.Errorf("no mutation's name contains %q", only)
	}
	return broken, nil
}
