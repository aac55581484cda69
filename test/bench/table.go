package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/goals"
)

const (
	tableRate  = 1000            // k8s: mutations a second of both servers
	listsLeast = 5 * time.Second // a stream of 100,000 keys takes one on a busy machine
	tableTrip  = 50 * time.Millisecond
	tableSites = 4 * time.Second // each row between sites
	tableGeo   = 2 * time.Second // each row between regions
)

// tablePlan is what the command line of `table` asks for.
type tablePlan struct {
	servers      []cluster.Server
	dir          string
	sections     []string
	rounds       int
	values       int
	warm, length time.Duration
}

// part is how one section of the table is measured.
type part struct {
	command string // that measures the same by itself, without servers and directory
	rounds  int
	run     func(context.Context, cluster.Server) ([]figures.Row, error)
}

// goalTable measures all rows of the table of goals, and prints it.
func goalTable(ctx context.Context, arguments []string) error {
	p, err := parseTable(arguments)
	if err != nil {
		return err
	}
	parts := p.parts()
	for _, s := range p.servers {
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
	for _, name := range p.sections {
		one := parts[name]
		rows, err := p.rows(ctx, name, one)
		all = append(all, goals.Measured{Name: name, Command: one.command, Rounds: one.rounds, Rows: rows})
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Println()
	goals.Print(os.Stdout, p.servers[0].Name, p.servers[1].Name, p.values, all)
	fmt.Printf("\n%s in all\n", time.Since(begun).Round(time.Second))
	return wrong
}

func parseTable(arguments []string) (*tablePlan, error) {
	p := &tablePlan{}
	var names []string
	for _, section := range goals.Sections(1) {
		names = append(names, section.Name)
	}
	flags := flag.NewFlagSet("table", flag.ExitOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs: on the disk to test, not in memory")
	sections := flags.String("sections", strings.Join(names, ","), "of these")
	flags.IntVar(&p.rounds, "rounds", 3, "rounds of what takes seconds; what takes minutes has one or two")
	flags.IntVar(&p.values, "values", 1_000_000, "memory: how many values of 256 bytes")
	flags.DurationVar(&p.length, "duration", 2*time.Second, "of one measurement of a closed loop")
	flags.DurationVar(&p.warm, "warmup", time.Second, "before each")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if len(p.servers) != 2 || p.dir == "" || min(p.rounds, p.values) < 1 || flags.NArg() > 0 {
		return nil, errors.New("table: want --server twice, --dir, at least one round and value, and nothing but flags")
	}
	p.sections = strings.Split(*sections, ",")
	for _, name := range p.sections {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("table: no section %q, only %s", name, strings.Join(names, ", "))
		}
	}
	return p, nil
}

// rows runs a part for both servers in turn. A round that fails ends it.
func (p *tablePlan) rows(ctx context.Context, name string, one part) (all []figures.Row, err error) {
	for round := range one.rounds {
		order := slices.Clone(p.servers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			say(fmt.Sprintf("%s, round %d of %d", name, round+1, one.rounds), s.Name)
			got, err := one.run(ctx, s)
			for i := range got {
				got[i].Server, got[i].Round = s.Name, round
			}
			if all = append(all, got...); err != nil {
				return all, fmt.Errorf("%s: %w", s.Name, err)
			}
		}
	}
	return all, nil
}

// parts are how the sections are measured.
func (p *tablePlan) parts() map[string]part {
	closed := func(length time.Duration, clients []int, workloads ...string) part {
		one := plan{
			dir: p.dir, workloads: workloads, clients: clients, watchers: []int{1000}, watchStreams: 50, values: p.values,
			warm: p.warm, length: length,
		}
		numbers := strings.Trim(strings.ReplaceAll(fmt.Sprint(clients), " ", ","), "[]")
		return part{fmt.Sprintf("go run . run --workloads %s --clients %s --rounds %d --duration %s --warmup %s",
			strings.Join(workloads, ","), numbers, p.rounds, length, p.warm), p.rounds, one.runServer}
	}
	memory := closed(p.length, []int{1}, "memory")
	memory.rounds, memory.command = 1, fmt.Sprintf("go run . run --workloads memory --values %d --rounds 1", p.values)
	one := nativePlan{dir: p.dir, operations: []int{64, 256}, programs: []int{1, 4}, warm: p.warm, length: p.length}
	return map[string]part{
		"calls":  closed(p.length, []int{1, 64, 256}, "put", "txn", "range"),
		"lists":  closed(max(p.length, listsLeast), []int{1}, "range-1000", "stream-100000"),
		"watch":  closed(p.length, []int{1}, "watch"),
		"leases": closed(p.length, []int{64}, "lease-grant", "keepalive", "keepalive-100"),
		"native": {fmt.Sprintf("go run . native --operations 64,256 --programs 1,4 --rounds %d --duration %s --warmup %s",
			p.rounds, p.length, p.warm), p.rounds, one.measure},
		"memory": memory,
		"life":   {"go run . life --rounds 1", 1, p.life},
		"k8s": {fmt.Sprintf("go run . k8s --find-max --rate 800 --search 40s --rounds %d; go run . k8s --rate %d "+
			"--duration 15s --rounds %d", min(p.rounds, 2), tableRate, min(p.rounds, 2)), min(p.rounds, 2), p.kubernetes},
		"sites": {fmt.Sprintf("go run . far --members 3 --beside --reads --clients 1 --duration %s; ... --clients 64; "+
			"... --members 5 --clients 1", tableSites), 1, p.sites},
		"regions": {fmt.Sprintf("go run . far --regions --reads --clients 1 --duration %s; ... --clients 64", tableGeo), 1,
			p.regions},
	}
}

// life measures the loads of the command life with its defaults.
func (p *tablePlan) life(ctx context.Context, s cluster.Server) (all []figures.Row, err error) {
	one, err := parseLife([]string{"--server", s.Name + "=" + s.Path, "--dir", p.dir})
	if err != nil {
		return nil, err
	}
	for _, l := range one.loads {
		f, _, err := one.measure(ctx, s, l)
		if err != nil {
			return all, err
		}
		all = append(all, f)
	}
	return all, nil
}

// kubernetes looks for the highest rate, and then measures one that both servers have.
func (p *tablePlan) kubernetes(ctx context.Context, s cluster.Server) (all []figures.Row, err error) {
	given := []string{"--server", s.Name + "=" + s.Path, "--dir", p.dir}
	for _, flags := range [][]string{
		{"--find-max", "--rate", "800", "--search", "40s"},
		{"--rate", fmt.Sprint(tableRate), "--duration", "15s"},
	} {
		one, err := parseControlPlane(append(slices.Clone(given), flags...))
		if err != nil {
			return all, err
		}
		rows, err := one.measure(ctx, s, 0)
		for i := range rows {
			if rows[i].Workload = "k8s, " + rows[i].Workload; i == 0 || !one.findMax {
				all = append(all, rows[i]) // other rows of a search are of different rates
			}
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// sites measures writes and reads between sites, through a follower and through the leader.
func (p *tablePlan) sites(ctx context.Context, s cluster.Server) (all []figures.Row, err error) {
	for _, row := range []struct{ members, clients int }{{3, 1}, {3, 64}, {5, 1}} {
		f := farLoad{server: s.Name, writers: row.clients, natives: 1, delay: tableTrip / 2, length: tableSites, reads: true}
		f.told = func(r figures.Row) {
			operation, _, _ := strings.Cut(r.Workload, ",")
			_, role, _ := strings.Cut(r.Workload, "through ")
			_, role, _ = strings.Cut(role, " ") // a follower, the leader
			r.Workload = fmt.Sprintf("%d sites, %d: %s, %s", row.members, row.clients, operation, role)
			all = append(all, r)
		}
		if err := f.measure(ctx, s, p.dir, row.members); err != nil {
			return all, err
		}
	}
	return all, nil
}

// regions measures writes and reads in each of five regions.
func (p *tablePlan) regions(ctx context.Context, s cluster.Server) (all []figures.Row, err error) {
	for _, clients := range []int{1, 64} {
		f := farLoad{server: s.Name, writers: clients, natives: 1, length: tableGeo, reads: true}
		f.told = func(r figures.Row) {
			r.Workload = fmt.Sprintf("%s, %d", r.Workload, clients)
			all = append(all, r)
		}
		if err := f.measureRegions(ctx, s, p.dir); err != nil {
			return all, err
		}
	}
	return all, nil
}
