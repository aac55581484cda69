package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/cpuparts"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"
	"github.com/quorate/quorate/test/bench/pictures"
)

const resultsFile = "bench.json" // beside the pictures

// picturedLoads are the workloads of throughput and of processor time.
var picturedLoads = []string{"put", "range"}

// drawing is what the pictures are made of, and where they go.
type drawing struct {
	*experiment
	out        string
	clients    []int
	throughput string // the command line
}

func pictureFlags(f *flags) func(e *experiment) error {
	out := f.place("out", "the directory that gets the pictures, and "+resultsFile, true)
	from := f.place("from", "draw what such a file says, and measure nothing", false)
	clients := f.numbers("clients", "1,4,16,64,256", "throughput: numbers of closed-loop clients")
	w := f.window()
	return func(e *experiment) error {
		if *out == "" {
			return errors.New("want --out")
		}
		d := &drawing{experiment: e, out: *out, clients: *clients}
		if e.run = d.measureAll; *from != "" {
			e.idle, e.run = true, func(context.Context) error {
				results, err := readResults(*from, pictures.Read)
				if err != nil {
					return err
				}
				return d.write(results)
			}
		}
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(d.clients), " ", ","), "[]")
		d.throughput = fmt.Sprintf("run --workloads %s --clients %s --rounds %d --duration %s --warmup %s",
			strings.Join(picturedLoads, ","), list, e.rounds, *w.length, *w.warm)
		e.rounds = 1 // of what has a picture of its own
		return nil
	}
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

// write writes the results and the pictures.
func (d *drawing) write(results *pictures.Results) error {
	return writePictures(d.out, pictures.Draw(results), resultsFile, results.Write)
}

// writePictures writes pictures, and a file that says of what they were drawn.
func writePictures(out string, drawn map[string][]byte, results string, write func(io.Writer) error) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for name, picture := range drawn {
		if err := os.WriteFile(filepath.Join(out, name), picture, 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(out, results))
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// measureAll measures what the pictures are drawn of.
func (d *drawing) measureAll(ctx context.Context) error {
	results := &pictures.Results{
		Date: time.Now().UTC().Format("2 January 2006"), Machine: cluster.Machine(), Command: d.command,
	}
	throughput, err := d.part(d.throughput)
	if err != nil {
		return err
	}
	rates, err := throughput.measure(ctx)
	if err != nil {
		return err
	}
	details, err := d.measure(ctx)
	if err != nil {
		return err
	}
	for _, s := range d.servers {
		version, err := cluster.Version(ctx, s)
		if err != nil {
			return err
		}
		one := pictures.Server{Name: s.Name, Version: version, Curves: d.curves(rates, s.Name)}
		for i := range details {
			if details[i].Server != s.Name {
				continue
			}
			switch detail := details[i].Detail.(type) {
			case *pictures.Timeline:
				one.Seconds = detail
			case pictures.Spent:
				one.Parts = append(one.Parts, detail)
			}
		}
		results.Servers = append(results.Servers, one)
	}
	all := append(rates, details...)
	var others []float64
	for i := range all {
		others = append(others, all[i].Values[figures.OthersPercent])
	}
	results.Others = figures.Median(others)
	return errors.Join(d.write(results), d.record(ctx, all))
}

// curves are a server's throughput against clients.
func (d *drawing) curves(rows []figures.Row, server string) (all []pictures.Curve) {
	for _, workload := range picturedLoads {
		curve := pictures.Curve{Workload: workload}
		for _, n := range d.clients {
			var each []float64
			for i := range rows {
				if f := &rows[i]; f.Server == server && f.Workload == closedName(workload, n) {
					each = append(each, f.Values[figures.PerSecond])
				}
			}
			curve.Points = append(curve.Points, pictures.Point{Clients: n, Median: rounded(figures.Median(each)),
				Least: rounded(slices.Min(each)), Most: rounded(slices.Max(each))})
		}
		all = append(all, curve)
	}
	return all
}

// profiles are those of all members under each of these workloads.
func profiles(f *flags) func() ([]trial, error) {
	w := window{f.duration("warmup", "2s", "before each measurement", 0),
		f.duration("profile", "8s", "processor time: of each profile", time.Second)}
	clients := f.number("profile-clients", "64", "processor time: closed-loop clients", 1, math.MaxInt)
	do := func(ctx context.Context, b *bed) (all []figures.Row, err error) {
		for _, workload := range picturedLoads {
			row, err := profile(ctx, b.Cluster, w, workload, *clients)
			if err != nil {
				return nil, err
			}
			all = append(all, row)
		}
		return all, nil
	}
	return func() ([]trial, error) {
		return []trial{{filled: true, on: cluster.Conditions{Flags: []string{"--enable-pprof"}}, do: do}}, nil
	}
}

// profile loads a cluster, and profiles it in the measured window.
func profile(ctx context.Context, c *cluster.Cluster, w window, workload string, clients int) (figures.Row, error) {
	f := figures.NewRow(closedName(workload, clients) + ", profiled")
	workers, err := load.Open(ctx, c, clients)
	if err != nil {
		return f, err
	}
	var shares [cpuparts.Count]float64
	var failed error
	var group sync.WaitGroup
	group.Go(func() {
		cluster.Pause(ctx, *w.warm)
		profiles, err := c.Profiles(ctx, *w.length)
		if failed = err; err == nil {
			shares = cpuparts.Shares(profiles)
		}
	})
	from, to := load.ClosedLoop(ctx, c, workers, load.Operations[workload], *w.warm, *w.length)
	load.Charge(&f, from, to, workers)
	group.Wait()
	spent := pictures.Spent{Workload: workload, Clients: clients}
	for part := range cpuparts.Count {
		spent.Parts = append(spent.Parts,
			pictures.Share{Part: part.String(), Micros: rounded(shares[part] * f.Values[figures.ServerMicros])})
	}
	f.Detail = spent
	return f, errors.Join(failed, load.Close(workers))
}
