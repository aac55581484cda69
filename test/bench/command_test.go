package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/goals"
)

// given is what each command wants at least.
func given(c *command) []string {
	arguments := []string{"--server", "ours=/bin/ours", "--dir", "data"}
	if c.servers != 1 {
		arguments = append([]string{"--server", "etcd=/bin/etcd"}, arguments...)
	}
	if c.name == "pictures" {
		arguments = append(arguments, "--out", "out")
	}
	return arguments
}

// Ensure that each command has workloads that say what they measure, takes its flags, and says by which command line the same
// is measured.
func TestCommands(t *testing.T) {
	for _, c := range commands() {
		e, err := c.parse(given(&c))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(e.trials) == 0 && c.name != "table" {
			t.Errorf("%s has nothing to do", c.name)
		}
		for i := range c.workloads {
			if w := &c.workloads[i]; w.about == "" || len(w.measures) == 0 {
				t.Errorf("%s, %s: about %q, measures %v", c.name, w.name, w.about, w.measures)
			}
		}
		again, err := c.parse(words(strings.TrimPrefix(e.command, "go run . "+c.name+" ")))
		if err != nil || again.command != e.command {
			t.Errorf("%s: %v, a command that measures the same is %q, and by that %q", c.name, err, e.command, again.command)
		}
		var text strings.Builder
		_, err = c.parse([]string{"--help"})
		err.(help).print(&text)
		for _, want := range []string{c.usage(), "-dir", "-server"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s --help says nothing of %q:\n%s", c.name, want, text.String())
			}
		}
	}
}

// Ensure that the command line of a run has what was given, and no flags that say nothing of it.
func TestFlags_line(t *testing.T) {
	for _, row := range []struct{ given, want string }{
		{"life --load 256:10:20 --load 1024:1:2 --clients 3", "life --server a=PATH --dir DIR --load 256:10:20 --load 1024:1:2 " +
			"--values compressible --clients 3 --compactions 8 --rounds 1"},
		{"far --beside --flags --x=1 --json out", "far --server a=PATH --flags a=--x=1 --dir DIR --trip 50ms --members 5 " +
			"--clients 4 --natives 1 --duration 10s --beside --rounds 1"},
		{"run --workloads start", "run --server a=PATH --dir DIR --workloads start --rounds 3"},
		{"narrow --scenarios snapshot;lag", ""},
	} {
		fields := strings.Fields(row.given)
		c := commandOf(commands(), fields[0])
		e, err := c.parse(append([]string{"--server", "a=/bin/a", "--dir", "data"}, fields[1:]...))
		if row.want == "" && err != nil {
			continue
		}
		if err != nil || e.command != "go run . "+row.want {
			t.Errorf("%s: got %q, %v, want %q", row.given, e.command, err, row.want)
		}
	}
}

// words splits a line as a shell does, as far as there are single quotes.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

func TestCommand_parse_refuses(t *testing.T) {
	for _, row := range []struct{ command, flags, want string }{
		{"run", "--rounds 0", "at least 1"},
		{"run", "--clients 4,0", "at least 1"},
		{"run", "--workloads put,other", `"other" is none of put`},
		{"run", "more", "nothing but flags"},
		{"run", "--flags other=--a", `no --server "other" before it`},
		{"run", "--other", "not defined"},
		{"k8s", "--nodes 9", "at least 10"},
		{"k8s", "--pods 19", "at least 20 pods"},
		{"k8s", "--rate -1", "at least 0"},
		{"k8s", "--pod-bytes 100", "at least 1024"},
		{"k8s", "--pod-bytes 2000000", "at most 1048576"},
		{"k8s", "--event-ttl 1s", "at least 2s"},
		{"k8s", "--compact-every 0", "at least 1ns"},
		{"k8s", "--list-every 0", "at least 1ns"},
		{"k8s", "--duration 0", "at least 1ns"},
		{"k8s", "--values zeros", `"zeros" is none of compressible, random`},
		{"k8s", "--kill-leader --find-max", "only one of"},
		{"k8s", "--kill-leader --replace-member", "only one of"},
		{"table", "--server third=/bin/third", "want 2 --server"},
		{"table", "--sections calls,other", `"other" is none of`},
		{"protocols", "--server second=/bin/second", "want 1 --server"},
		{"pictures", "--rate 0", "at least 1"},
		{"pictures", "--profile 10ms", "at least 1s"},
		{"pictures", "--compact-every 0", "at least 1ns"},
		{"narrow", "--rates 0.01", "at least 0.1"},
		{"life", "--load 256:10", "want SIZE:KEYS:PUTS"},
		{"slow", "--slow nobody", "is none of none, follower, leader, all"},
		{"hold", "--memory much", "want a number of MiB"},
		{"hold", "--only nobody's", "no attack has that in its name"},
		{"bytes", "--from moon", "is none of us-east"},
	} {
		c := commandOf(commands(), row.command)
		_, err := c.parse(append(given(c), strings.Fields(row.flags)...))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s %s: got %v, want %q", row.command, row.flags, err, row.want)
		}
	}
	if _, err := commandOf(commands(), "run").parse([]string{"--dir", "data"}); err == nil || !strings.Contains(err.Error(), "want --server") {
		t.Errorf("no server: got %v", err)
	}
}

// Ensure that flags of one server are its own, those of all are of all, and a server without a name has its program's.
func TestFlags_servers(t *testing.T) {
	e, err := commandOf(commands(), "run").parse(strings.Fields("--server etcd=/bin/etcd --flags --all --server /bin/ours " +
		"--flags ours=--a=1,--b --dir data"))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(e.servers)
	if want := "[{etcd /bin/etcd [--all] false []} {ours /bin/ours [--a=1 --b --all] false []}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Ensure that what may share a cluster does, in the order in which it was asked for, and that limits and rates do not.
func TestTogether(t *testing.T) {
	for _, row := range []struct{ command, flags, want string }{
		{"run", "--workloads put,start,range,watch,mixed --watchers 1,2", "put, range, mixed; start; watch by 1; watch by 2"},
		{"memory", "--workloads put,fill --memory 1MiB,2MiB", "put 1MiB; put 2MiB; fill 1MiB; fill 2MiB"},
		{"memory", "--workloads put --memory=", "put"},
		{"narrow", "--scenarios snapshot --rates 1,0.5", "snapshot, 1 MB/s; snapshot, 0.5 MB/s"},
		{"hold", "--only idle --memory 1MiB,2MiB --draw 1", ""},
	} {
		c := commandOf(commands(), row.command)
		e, err := c.parse(append(given(c), strings.Fields(row.flags)...))
		if row.want == "" {
			if err == nil {
				t.Errorf("%s %s: an attack that is drawn is called idle", row.command, row.flags)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range e.trials {
			names = append(names, e.trials[i].name)
		}
		if got := strings.Join(names, "; "); got != row.want {
			t.Errorf("%s %s: got %q, want %q", row.command, row.flags, got, row.want)
		}
	}
}

func TestTrial_before(t *testing.T) {
	var did []string
	one := func(name string, k figures.Kind) trial {
		return trial{name: name, shares: true, measures: []figures.Kind{k},
			do: func(context.Context, *bed) ([]figures.Row, error) {
				did = append(did, name)
				row := figures.NewRow(name)
				row.Set(k, 1)
				return []figures.Row{row}, nil
			}}
	}
	all := together([]trial{one("first", figures.Done), {name: "apart"}, one("second", figures.Calls)})
	rows, err := all[0].do(t.Context(), nil)
	if err != nil || len(all) != 2 || len(rows) != 2 || !slices.Equal(did, []string{"first", "second"}) {
		t.Fatalf("%d trials, of which the first does %v: %v, %v", len(all), did, rows, err)
	}
	if err := all[0].check(rows); err != nil {
		t.Error(err)
	}
	rows[0].Set(figures.Refused, 0)
	if err := all[0].check(rows); err == nil || !strings.Contains(err.Error(), `first has "refused"`) {
		t.Errorf("a column that nobody announced: %v", err)
	}
}

// Ensure that each section of the table of goals has command lines that can be read.
func TestGoalTable_lines(t *testing.T) {
	c := commandOf(commands(), "table")
	e, err := c.parse(given(c))
	if err != nil {
		t.Fatal(err)
	}
	table := &goalTable{experiment: e, values: 10, length: time.Second}
	e.part = func(line string) (*experiment, error) { return partOf(commands(), e, line) }
	lines := table.lines()
	for _, section := range goals.Sections(1) {
		if len(lines[section.Name]) == 0 {
			t.Errorf("section %s cannot be measured", section.Name)
		}
		for _, line := range lines[section.Name] {
			part, err := table.part(line)
			if err != nil || len(part.trials) == 0 || len(part.servers) != 2 {
				t.Errorf("%s: %s: %+v, %v", section.Name, line, part, err)
			}
		}
	}
}

// Ensure that pictures can be drawn again without servers.
func TestPictures_from(t *testing.T) {
	e, err := commandOf(commands(), "pictures").parse([]string{"--from", "bench.json", "--out", "out"})
	if err != nil || !e.idle {
		t.Errorf("got %+v, %v", e, err)
	}
	c := commandOf(commands(), "pictures")
	e, err = c.parse(append(given(c), "--clients", "1,8"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"go run . pictures --server etcd=PATH --server ours=PATH --dir DIR --out DIR",
		" --clients 1,8 ", " --rounds 3", " --duration 1500ms"} {
		if !strings.Contains(e.command, want) {
			t.Errorf("the command is %q, and lacks %q", e.command, want)
		}
	}
}
