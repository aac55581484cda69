package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/cpuparts"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"
	"github.com/quorate/quorate/test/bench/pictures"
)

const resultsFile = "bench.json" // beside the pictures

// picturePlan is what the command line of `pictures` asks for.
type picturePlan struct {
	servers       []cluster.Server
	dir, out      string
	from          string
	clients       []int
	rounds        int
	warm, length  time.Duration
	timeline      timeline
	profiled      time.Duration
	profileLoad   int // clients
	othersPercent []float64
}

// picturedLoads are the workloads of throughput and of processor time.
var picturedLoads = []string{"put", "range"}

// drawPictures measures and draws, or draws again what was measured.
func drawPictures(ctx context.Context, arguments []string) error {
	p, err := parsePictures(arguments)
	if err != nil {
		return err
	}
	if p.from != "" {
		results, err := readResults(p.from, pictures.Read)
		if err != nil {
			return err
		}
		return p.write(results)
	}
	results, err := p.measure(ctx)
	if err != nil {
		return err
	}
	return p.write(results)
}

// readResults reads what an earlier run has written.
func readResults[T any](path string, read func(io.Reader) (T, error)) (results T, err error) {
	file, err := os.Open(path)
	if err != nil {
		return results, err
	}
	defer file.Close()
	return read(file)
}

func parsePictures(arguments []string) (*picturePlan, error) {
	p := &picturePlan{}
	var clients string
	flags := flag.NewFlagSet("pictures", flag.ExitOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs: on the disk to test, not in memory")
	flags.StringVar(&p.out, "out", "", "the directory that gets the pictures, and "+resultsFile)
	flags.StringVar(&p.from, "from", "", "draw what such a file says, and measure nothing")
	flags.StringVar(&clients, "clients", "1,4,16,64,256", "throughput: numbers of closed-loop clients")
	flags.IntVar(&p.rounds, "rounds", 3, "throughput: rounds; each takes every server once")
	flags.DurationVar(&p.length, "duration", 1500*time.Millisecond, "throughput: of one measurement")
	flags.DurationVar(&p.warm, "warmup", 500*time.Millisecond, "throughput: before each measurement")
	flags.Float64Var(&p.timeline.rate, "rate", 1000, "latency: puts a second")
	flags.DurationVar(&p.timeline.length, "timeline", time.Minute, "latency: how long")
	flags.DurationVar(&p.timeline.every, "compact-every", 10*time.Second, "latency: compactions of history")
	flags.DurationVar(&p.timeline.defrag, "defrag-at", 45*time.Second, "latency: when members are defragmented; 0: never")
	flags.DurationVar(&p.profiled, "profile", 8*time.Second, "processor time: of each profile")
	flags.IntVar(&p.profileLoad, "profile-clients", 64, "processor time: closed-loop clients")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	switch {
	case p.out == "" || flags.NArg() > 0:
		return nil, errors.New("pictures: want --out, and nothing but flags")
	case p.from != "":
		return p, nil
	case len(p.servers) == 0 || p.dir == "":
		return nil, errors.New("pictures: want --server and --dir, or --from")
	case min(p.rounds, p.profileLoad) < 1 || p.timeline.rate < 1:
		return nil, errors.New("pictures: want at least one round, client, and put a second")
	case min(p.length, p.timeline.every) <= 0 || min(p.timeline.length, p.profiled) < time.Second:
		return nil, errors.New("pictures: want a timeline and a profile of a second at least, and times that are not zero")
	}
	var err error
	p.clients, err = parseNumbers(clients)
	return p, err
}

// write writes the results and the pictures.
func (p *picturePlan) write(results *pictures.Results) error {
	if err := os.MkdirAll(p.out, 0o755); err != nil {
		return err
	}
	for name, drawn := range pictures.Draw(results) {
		if err := os.WriteFile(filepath.Join(p.out, name), drawn, 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(p.out, resultsFile))
	if err != nil {
		return err
	}
	return errors.Join(results.Write(file), file.Close())
}

// measure takes one picture after the other.
func (p *picturePlan) measure(ctx context.Context) (*pictures.Results, error) {
	results := &pictures.Results{
		Date: time.Now().UTC().Format("2 January 2006"), Machine: cluster.Machine(), Command: p.command(),
	}
	for _, s := range p.servers {
		version, err := cluster.Version(ctx, s)
		if err != nil {
			return nil, err
		}
		results.Servers = append(results.Servers, pictures.Server{Name: s.Name, Version: version})
	}
	if err := p.throughput(ctx, results); err != nil {
		return nil, err
	}
	for i, s := range p.servers {
		say("latency", s.Name)
		seconds, err := p.timeline.measure(ctx, s, p.dir)
		if err != nil {
			return nil, fmt.Errorf("%s: latency: %w", s.Name, err)
		}
		results.Servers[i].Seconds = seconds
	}
	for i, s := range p.servers {
		say("processor time", s.Name)
		parts, err := p.processor(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: processor time: %w", s.Name, err)
		}
		results.Servers[i].Parts = parts
	}
	results.Others = figures.Median(p.othersPercent)
	return results, nil
}

// command is the command line that measures the same, wherever the programs and the data lie.
func (p *picturePlan) command() string {
	text := "go run . pictures"
	for _, s := range p.servers {
		text += fmt.Sprintf(" --server %s=PATH", s.Name)
	}
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(p.clients), " ", ","), "[]")
	return text + fmt.Sprintf(" --dir DIR --out DIR --clients %s --rounds %d --duration %s --warmup %s --rate %.0f "+
		"--timeline %s --compact-every %s --defrag-at %s --profile %s --profile-clients %d", list, p.rounds, p.length, p.warm,
		p.timeline.rate, p.timeline.length, p.timeline.every, p.timeline.defrag, p.profiled, p.profileLoad)
}

// throughput alternates which server goes first.
func (p *picturePlan) throughput(ctx context.Context, results *pictures.Results) error {
	type where struct {
		server, workload string
		clients          int
	}
	rates := map[where][]float64{}
	for round := range p.rounds {
		order := slices.Clone(p.servers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			say(fmt.Sprintf("throughput, round %d", round+1), s.Name)
			one := plan{dir: p.dir, clients: p.clients, warm: p.warm, length: p.length}
			rows, err := one.runShared(ctx, s, picturedLoads)
			if err != nil {
				return fmt.Errorf("%s: throughput: %w", s.Name, err)
			}
			for i := range rows { // workloads, and in each the numbers of clients
				at := where{s.Name, picturedLoads[i/len(p.clients)], p.clients[i%len(p.clients)]}
				rates[at] = append(rates[at], rows[i].Values[figures.PerSecond])
				p.othersPercent = append(p.othersPercent, rows[i].Values[figures.OthersPercent])
			}
		}
	}
	for i, s := range p.servers {
		for _, workload := range picturedLoads {
			curve := pictures.Curve{Workload: workload}
			for _, n := range p.clients {
				each := rates[where{s.Name, workload, n}]
				curve.Points = append(curve.Points, pictures.Point{Clients: n, Median: rounded(figures.Median(each)),
					Least: rounded(slices.Min(each)), Most: rounded(slices.Max(each))})
			}
			results.Servers[i].Curves = append(results.Servers[i].Curves, curve)
		}
	}
	return nil
}

// processor profiles all members of a cluster under each workload.
func (p *picturePlan) processor(ctx context.Context, s cluster.Server) (all []pictures.Spent, err error) {
	s.Flags = append(slices.Clone(s.Flags), "--enable-pprof")
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	if err := load.Fill(ctx, c, load.KeyCount, load.KeyAt); err != nil {
		return nil, err
	}
	for _, workload := range picturedLoads {
		f, shares, err := p.profile(ctx, c, workload)
		if err != nil {
			return nil, err
		}
		spent := pictures.Spent{Workload: workload, Clients: p.profileLoad}
		for part := range cpuparts.Count {
			spent.Parts = append(spent.Parts, pictures.Share{
				Part: part.String(), Micros: rounded(shares[part] * f.Values[figures.ServerMicros]),
			})
		}
		all = append(all, spent)
	}
	return all, nil
}

// profile loads a cluster, and profiles it in the measured window.
func (p *picturePlan) profile(
	ctx context.Context, c *cluster.Cluster, workload string,
) (f figures.Row, shares [cpuparts.Count]float64, err error) {
	f = figures.NewRow(workload)
	workers, err := load.Open(ctx, c, p.profileLoad)
	if err != nil {
		return f, shares, err
	}
	type answer struct {
		shares [cpuparts.Count]float64
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		cluster.Pause(ctx, p.warm)
		profiles, err := c.Profiles(ctx, p.profiled)
		if err != nil {
			answers <- answer{err: err}
			return
		}
		answers <- answer{shares: cpuparts.Shares(profiles)}
	}()
	from, to := load.ClosedLoop(ctx, c, workers, load.Operations[workload], p.warm, p.profiled)
	load.Charge(&f, from, to, workers)
	got := <-answers
	p.othersPercent = append(p.othersPercent, f.Values[figures.OthersPercent])
	return f, got.shares, errors.Join(got.err, load.Close(workers))
}
