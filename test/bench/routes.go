package main

import (
	"github.com/quorate/quorate/test/bench/cluster"

	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// The sites of `quorate dev --geo regions`, in the order of their ports.
var sites = []string{"us-east", "us-west", "eu", "ap", "sa"}

const (
	routesPort = 23790 // client port of the first member; each further one is 10 above
	routesWait = 30 * time.Second
)

// routes measures how often the fast path decides, in five regions of which some are busy at the same time.
func routes(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("routes", flag.ContinueOnError)
	program := flags.String("server", "", "the quorate to run")
	dir := flags.String("dir", "", "directory for the data; it must not exist")
	busy := flags.String("busy", "us-east", "sites that write, with commas between")
	leader := flags.String("leader", "eu", "site that leads")
	clients := flags.Int("clients", 8, "writers at each busy site")
	rate := flags.Int("rate", 0, "writes each writer begins in a second; 0: one after another")
	length := flags.Duration("duration", 10*time.Second, "how long to write")
	extra := flags.String("flags", "", "flags for the servers, with commas between")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *program == "" || *dir == "" {
		return errors.New("routes: --server and --dir are required")
	}
	if _, err := os.Stat(*dir); err == nil {
		return fmt.Errorf("routes: %s exists: name a directory that does not", *dir)
	}
	for _, site := range append(strings.Split(*busy, ","), *leader) {
		if !slices.Contains(sites, site) {
			return fmt.Errorf("routes: there is no site %q, only %s", site, strings.Join(sites, ", "))
		}
	}
	stop, err := startRegions(ctx, *program, *dir, *extra)
	if err != nil {
		return err
	}
	defer stop()
	if err := makeLead(ctx, *leader); err != nil {
		return err
	}
	time.Sleep(time.Second) // the members measure how far they are from each other
	fmt.Printf("leader %s, %d writers at each of %s, %s; %s\n", *leader, *clients, *busy, *length, cluster.Machine())
	return writeFrom(ctx, strings.Split(*busy, ","), *clients, *rate, *length)
}

// startRegions starts the cluster and returns how to stop it.
func startRegions(ctx context.Context, program, dir, extra string) (stop func(), err error) {
	arguments := []string{"dev", "--geo", "regions", "--dir", dir, "--base-port", strconv.Itoa(routesPort)}
	if extra != "" {
		arguments = append(append(arguments, "--"), strings.Split(extra, ",")...)
	}
	cmd := exec.CommandContext(ctx, program, arguments...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // it waits for its members
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "members ready") {
				ready <- true
			}
		}
		close(ready)
	}()
	select {
	case <-time.After(routesWait):
	case ok := <-ready:
		if ok {
			return stop, nil
		}
	}
	stop()
	return nil, errors.New("routes: the members did not start")
}

func clientOf(site string) (*clientv3.Client, string, error) {
	endpoint := fmt.Sprintf("127.0.0.1:%d", routesPort+10*slices.Index(sites, site))
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second})
	return client, endpoint, err
}

// makeLead moves leadership to a site.
func makeLead(ctx context.Context, site string) error {
	target, endpoint, err := clientOf(site)
	if err != nil {
		return err
	}
	defer target.Close()
	status, err := target.Status(ctx, endpoint)
	if err != nil {
		return err
	}
	for _, other := range sites {
		client, endpoint, err := clientOf(other)
		if err != nil {
			return err
		}
		now, err := client.Status(ctx, endpoint)
		if err == nil && now.Leader == now.Header.MemberId && now.Leader != status.Header.MemberId {
			_, err = client.MoveLeader(ctx, status.Header.MemberId)
		}
		if err = errors.Join(err, client.Close()); err != nil {
			return err
		}
	}
	return nil
}

// writeFrom writes distinct keys from all sites at once, and prints what came of it at each.
func writeFrom(ctx context.Context, busy []string, clients, rate int, length time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, length+20*time.Second)
	defer cancel()
	until := time.Now().Add(length)
	took := make([][]time.Duration, len(busy))
	before := make([]map[string]float64, len(busy))
	errs := make([]error, len(busy))
	var all sync.WaitGroup
	for i, site := range busy {
		client, endpoint, err := clientOf(site)
		if err != nil {
			return err
		}
		defer client.Close()
		if before[i], err = scrape(endpoint); err != nil {
			return err
		}
		var mu sync.Mutex
		for w := range clients {
			all.Add(1)
			go func() {
				defer all.Done()
				for n := 0; time.Now().Before(until); n++ {
					begun := time.Now()
					_, err := client.Put(ctx, fmt.Sprintf("%s/%d/%d", site, w, n), "value")
					mu.Lock()
					took[i], errs[i] = append(took[i], time.Since(begun)), errors.Join(errs[i], err)
					mu.Unlock()
					if rate > 0 {
						time.Sleep(time.Until(begun.Add(time.Second / time.Duration(rate))))
					}
				}
			}()
		}
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Printf("%-8s %7s %7s %8s %9s %9s %9s  %s\n", "site", "p50 ms", "p90 ms", "writes", "fast", "overtaken", "agreed",
		"refusals by reason")
	for i, site := range busy {
		_, endpoint, err := clientOf(site)
		if err != nil {
			return err
		}
		after, err := scrape(endpoint)
		if err != nil {
			return err
		}
		printSite(site, took[i], before[i], after)
	}
	return nil
}

func printSite(site string, took []time.Duration, before, after map[string]float64) {
	grew := func(name string) float64 { return after[name] - before[name] }
	tried := max(1, grew("quorate_fast_proposals_total"))
	won, overtaken := grew("quorate_fast_wins_total"), grew("quorate_fast_overtaken_total")
	var refusals []string
	for name := range after {
		if strings.HasPrefix(name, "quorate_fast_refusals_total") && grew(name) > 0 {
			refusals = append(refusals, fmt.Sprintf("%s %.0f", strings.Split(name, `"`)[1], grew(name)))
		}
	}
	slices.Sort(refusals)
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
	}
	fmt.Printf("%-8s %7.1f %7.1f %8d %8.1f%% %8.1f%% %8.1f%%  %s\n", site, at(0.5), at(0.9), len(took), 100*won/tried,
		100*overtaken/tried, 100*(won+overtaken)/tried, strings.Join(refusals, ", "))
}

// scrape reads the counters of a member.
func scrape(endpoint string) (map[string]float64, error) {
	response, err := http.Get("http://" + endpoint + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for _, line := range strings.Split(string(text), "\n") {
		if name, number, ok := strings.Cut(line, " "); ok && strings.HasPrefix(name, "quorate_fast_") {
			if values[name], err = strconv.ParseFloat(number, 64); err != nil {
				return nil, fmt.Errorf("metric %q: %w", line, err)
			}
		}
	}
	return values, nil
}
