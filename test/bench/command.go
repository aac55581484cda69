package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/quorate/quorate/test/bench/figures"
)

// planner takes the flags that a workload heeds, and returns what makes its trials once they are known.
type planner func(f *flags) func() ([]trial, error)

// workload is a row of the table of workloads.
type workload struct {
	name, about string
	measures    []figures.Kind
	plan        planner
}

// command is the way to some of the workloads.
type command struct {
	name, about string
	rules       string // more about it, for --help
	servers     int    // that it wants; zero: one or more
	choose      string // the flag that says which of its workloads; empty: all of them
	chosen      string // those that it has if it is not given
	apart       string // what stands between them
	instead     map[string]string
	workloads   []workload
	// also takes flags of the command's own, and returns what changes the experiment once they are known; nil: nothing.
	also func(f *flags) func(e *experiment) error
}

// usage says how the command is used.
func (c *command) usage() string {
	return fmt.Sprintf("go run . %s --server NAME=PATH --dir DIR [flags]", c.name)
}

// parse reads a command line.
func (c *command) parse(arguments []string) (*experiment, error) {
	f := newFlags(c.name, c.instead)
	servers := f.servers()
	dir := f.place("dir", "where data lies while a cluster runs: on the disk to test, not in memory", true)
	finish := func(*experiment) error { return nil }
	if c.also != nil {
		finish = c.also(f)
	}
	say := slices.Clone(f.order) // flags of which the command line speaks
	var names []string
	var plans []func() ([]trial, error)
	taken := map[string][]string{} // flags by workload
	for i := range c.workloads {
		w := &c.workloads[i]
		f.asked = nil
		names, plans = append(names, w.name), append(plans, w.plan(f))
		taken[w.name] = f.asked
	}
	chosen := &names
	if c.choose != "" {
		between := c.apart
		if between == "" {
			between = ","
		}
		chosen = take(f, c.choose, c.chosen, "which of "+strings.Join(names, between), listBy(between, oneOf(names)))
	}
	rounds := f.number("rounds", "1", "rounds; each takes every server once", 1, math.MaxInt)
	json := f.place("json", "a file that gets every row of every round, for machines", false)
	if err := f.set.Parse(arguments); errors.Is(err, flag.ErrHelp) {
		return nil, help{c, f}
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	if f.set.NArg() > 0 {
		return nil, fmt.Errorf("%s: want nothing but flags, not %q", c.name, f.set.Arg(0))
	}
	e := &experiment{servers: servers(), dir: *dir, json: *json, rounds: *rounds}
	say = append(say, c.choose, "rounds")
	for _, name := range *chosen {
		say = append(say, taken[name]...)
	}
	e.run, e.command = e.report, f.line(e.servers, say)
	for _, name := range *chosen {
		at := slices.Index(names, name)
		trials, err := plans[at]()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		for _, t := range trials {
			if t.measures = c.workloads[at].measures; t.name == "" {
				t.name = name
			}
			e.trials = append(e.trials, t)
		}
	}
	e.trials = together(e.trials)
	if err := finish(e); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return e, c.check(e)
}

func (c *command) check(e *experiment) error {
	switch {
	case e.idle:
		return nil
	case c.servers > 0 && len(e.servers) != c.servers:
		return fmt.Errorf("%s: want %d --server", c.name, c.servers)
	case len(e.servers) == 0 || e.dir == "":
		return fmt.Errorf("%s: want --server and --dir", c.name)
	}
	return nil
}

// partOf is what another command line asks for, of the same servers.
func partOf(table []command, e *experiment, line string) (*experiment, error) {
	fields := strings.Fields(line)
	c := commandOf(table, fields[0])
	if c == nil {
		return nil, fmt.Errorf("no command %q", fields[0])
	}
	arguments := append(fields[1:], "--dir", e.dir)
	for _, s := range e.servers {
		arguments = append(arguments, "--server", s.Name+"="+s.Path)
	}
	one, err := c.parse(arguments)
	if err != nil {
		return nil, err
	}
	one.servers = e.servers // with their flags
	return one, nil
}

// commandOf is the command of a name; nil: there is none.
func commandOf(all []command, name string) *command {
	for i := range all {
		if all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

// help is what a command line with --help asks for.
type help struct {
	command *command
	flags   *flags
}

// Error implements error.
func (h help) Error() string { return h.command.name + ": help is asked for" }

func (h help) print(out io.Writer) {
	fmt.Fprintf(out, "%s\n\n%s\n%s", h.command.usage(), h.command.about, h.command.rules)
	h.command.list(out)
	fmt.Fprintf(out, "\nflags:\n")
	h.flags.set.SetOutput(out)
	h.flags.set.PrintDefaults()
}

// list says what the workloads are, which flags they take, and what they measure.
func (c *command) list(out io.Writer) {
	for i := range c.workloads {
		w := &c.workloads[i]
		f := newFlags(c.name, c.instead)
		w.plan(f)
		var columns []string
		for _, k := range slices.Compact(slices.Sorted(slices.Values(w.measures))) {
			columns = append(columns, k.String())
		}
		fmt.Fprintf(out, "\n%s\n    %s\n", w.name, w.about)
		if len(f.order) > 0 {
			fmt.Fprintf(out, "    takes --%s\n", strings.Join(f.order, ", --"))
		}
		fmt.Fprintf(out, "    measures %s\n", strings.Join(columns, ", "))
	}
}

// execute does what a command line asks for, some of it by other commands of the table.
func (c *command) execute(ctx context.Context, table []command, arguments []string) error {
	e, err := c.parse(arguments)
	var asked help
	if errors.As(err, &asked) {
		asked.print(os.Stdout)
		return nil
	}
	if err != nil {
		return err
	}
	e.part = func(line string) (*experiment, error) { return partOf(table, e, line) }
	return e.run(ctx)
}
