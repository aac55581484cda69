package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/goals"
)

// listsLeast is how long lists are measured at least: a stream of 100,000 keys takes a second on a busy machine.
const listsLeast = 5 * time.Second

// goalTable measures rows of the table of goals, section by section, and prints it.
type goalTable struct {
	*experiment
	values       int
	warm, length time.Duration
}

func goalFlags(f *flags) func(e *experiment) error {
	var names []string
	for _, section := range goals.Sections(1) {
		names = append(names, section.Name)
	}
	sections := f.choices("sections", strings.Join(names, ","), "of these", names)
	values := f.number("values", "1000000", "memory: how many values of 256 bytes", 1, math.MaxInt)
	length := f.duration("duration", "2s", "of one measurement of a closed loop", 1)
	warm := f.duration("warmup", "1s", "before each", 0)
	return func(e *experiment) error {
		t := &goalTable{experiment: e, values: *values, warm: *warm, length: *length}
		e.run = func(ctx context.Context) error { return t.print(ctx, *sections) }
		return nil
	}
}

func (t *goalTable) print(ctx context.Context, sections []string) error {
	for _, s := range t.servers {
		version, err := cluster.Version(ctx, s)
		if err != nil {
			return err
		}
		fmt.Printf("%s %s; ", s.Name, version)
	}
	begun := time.Now()
	fmt.Printf("%s; %s\n\n", begun.UTC().Format("2 January 2006, 15:04 UTC"), cluster.Machine())
	var all []goals.Measured
	var wrong error
	lines := t.lines()
	for _, name := range sections {
		one, err := t.section(ctx, name, lines[name])
		all = append(all, one)
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Println()
	goals.Print(os.Stdout, t.servers[0].Name, t.servers[1].Name, t.values, all)
	fmt.Printf("\n%s in all\n", time.Since(begun).Round(time.Second))
	var rows []figures.Row
	for i := range all {
		rows = append(rows, all[i].Rows...)
	}
	return errors.Join(wrong, t.record(ctx, rows))
}

// section measures one section by its command lines.
func (t *goalTable) section(ctx context.Context, name string, lines []string) (goals.Measured, error) {
	m := goals.Measured{Name: name, Command: "go run . " + strings.Join(lines, "; go run . ")}
	for _, line := range lines {
		part, err := t.part(line)
		if err != nil {
			return m, err
		}
		rows, err := part.measure(ctx)
		m.Rounds, m.Rows = part.rounds, append(m.Rows, rows...)
		if err != nil {
			return m, err
		}
	}
	return m, nil
}

// lines are the command lines by which each section is measured, without servers and directory.
func (t *goalTable) lines() map[string][]string {
	closed := func(workloads, clients string, length time.Duration) []string {
		return []string{fmt.Sprintf("run --workloads %s --clients %s --rounds %d --duration %s --warmup %s", workloads, clients,
			t.rounds, length, t.warm)}
	}
	return map[string][]string{
		"calls":  closed("put,txn,range", "1,64,256", t.length),
		"lists":  closed("range-1000,stream-100000", "1", max(t.length, listsLeast)),
		"watch":  closed("watch", "1", t.length),
		"leases": closed("lease-grant,keepalive,keepalive-100", "64", t.length),
		"native": {fmt.Sprintf("native --operations 64,256 --programs 1,4 --rounds %d --duration %s --warmup %s", t.rounds,
			t.length, t.warm)},
		"memory": {fmt.Sprintf("run --workloads memory --values %d --rounds 1", t.values)},
		"life":   {"life --rounds 1"},
		"k8s": {fmt.Sprintf("k8s --find-max --rate 800 --search 40s --rounds %d", min(t.rounds, 2)),
			fmt.Sprintf("k8s --rate 1000 --duration 15s --rounds %d", min(t.rounds, 2))},
		"sites": {"far --members 3 --beside --reads --clients 1,64 --duration 4s",
			"far --members 5 --beside --reads --clients 1 --duration 4s"},
		"regions": {"far --regions --reads --clients 1,64 --duration 2s"},
	}
}
