package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"
)

// routeRun is writers at some of five sites at the same time.
type routeRun struct {
	busy    []string
	leader  string
	writers int
	rate    int // of each
	length  time.Duration
}

// routes measures how often the fast path decides, in five regions of which some are busy at the same time.
func routes(f *flags) func() ([]trial, error) {
	busy := f.choices("busy", "us-east", "sites that write, with commas between", sites)
	leader := f.choice("leader", "eu", "site that leads", sites...)
	clients := f.numbers("clients", "8", "writers at each busy site")
	rate := f.number("rate", "0", "writes each writer begins in a second; 0: one after another", 0, math.MaxInt)
	length := f.duration("duration", "10s", "how long to write", 1)
	on := betweenSites()
	on.Flags = patientFlags
	return func() (all []trial, err error) {
		for _, n := range *clients {
			r := &routeRun{busy: *busy, leader: *leader, writers: n, rate: *rate, length: *length}
			all = append(all, trial{name: fmt.Sprintf("leader %s, %d writers at each of %s", *leader, n,
				strings.Join(*busy, ", ")), on: on, do: r.measure})
		}
		return all, nil
	}
}

// patientFlags are those that `quorate dev --geo regions` gives its members: the heart beats once in the longest round trip.
var patientFlags = []string{"--heartbeat-interval=258", "--election-timeout=1290"}

// site is what is measured at one of them.
type site struct {
	name, endpoint string
	workers        []*load.Worker
	before         map[string]float64 // the counters of its member
}

// measure writes distinct keys from all busy sites at once.
func (r *routeRun) measure(ctx context.Context, b *bed) (rows []figures.Row, err error) {
	if err := leadFrom(ctx, b.Cluster, slices.Index(sites, r.leader)); err != nil {
		return nil, err
	}
	cluster.Pause(ctx, siteSettles) // the members measure how far they are from each other
	var all []*site
	var workers []*load.Worker
	for _, name := range r.busy {
		s := &site{name: name, endpoint: b.Members[slices.Index(sites, name)].ClientAddr}
		client, err := cluster.Connect(s.endpoint)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		for range r.writers {
			w := &load.Worker{Number: len(workers), Client: client}
			if r.rate > 0 {
				w.Every = time.Second / time.Duration(r.rate)
			}
			s.workers, workers = append(s.workers, w), append(workers, w)
		}
		if s.before, err = scrape(ctx, s.endpoint, "quorate_fast_"); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	from, to := load.ClosedLoop(ctx, b.Cluster, workers, load.PutNew, 0, r.length)
	for _, s := range all {
		after, failed := scrape(ctx, s.endpoint, "quorate_fast_")
		row := r.row(s, from, to, after)
		if n := row.Values[figures.Failures]; n > 0 {
			failed = errors.Join(failed, fmt.Errorf("%s: %.0f writes failed", s.name, n))
		}
		rows, err = append(rows, row), errors.Join(err, failed)
	}
	return rows, errors.Join(err, ctx.Err())
}

func (r *routeRun) row(s *site, from, to cluster.Reading, after map[string]float64) figures.Row {
	f := figures.NewRow(fmt.Sprintf("%d at each: put, %s", r.writers, s.name))
	load.Latencies(&f, from, to, s.workers)
	times := load.Times(s.workers)
	f.Latencies(times.Count(), times.Quantile, times.Longest(), to.At.Sub(from.At))
	grew := func(name string) float64 { return after[name] - s.before[name] }
	tried := max(1, grew("quorate_fast_proposals_total"))
	won, overtaken := grew("quorate_fast_wins_total"), grew("quorate_fast_overtaken_total")
	f.Set(figures.FastPercent, 100*won/tried)
	f.Set(figures.OvertakenPercent, 100*overtaken/tried)
	f.Set(figures.AgreedPercent, 100*(won+overtaken)/tried)
	var refusals []string
	for name := range after {
		if strings.HasPrefix(name, "quorate_fast_refusals_total") && grew(name) > 0 {
			refusals = append(refusals, fmt.Sprintf("%s %.0f", strings.Split(name, `"`)[1], grew(name)))
		}
	}
	if slices.Sort(refusals); len(refusals) > 0 {
		f.Note = "refusals: " + strings.Join(refusals, ", ")
	}
	return f
}

// scrape reads the metrics of a member whose names have a prefix.
func scrape(ctx context.Context, endpoint, prefix string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+endpoint+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if name, number, ok := strings.Cut(lines.Text(), " "); ok && strings.HasPrefix(name, prefix) {
			if values[name], err = strconv.ParseFloat(number, 64); err != nil {
				return nil, fmt.Errorf("metric %q: %w", lines.Text(), err)
			}
		}
	}
	return values, nil
}
