package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
)

// far measures writes and linearizable reads between sites: any two members are one round trip apart. The client is in the
// site of the member that it asks, or in no member's site and as far from each as they are from each other.
func far(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("far", flag.ContinueOnError)
	var servers []cluster.Server
	flags.Func("server", "NAME=PATH, again for each server; one named quorate is measured with its own client, too",
		func(text string) error {
			name, path, ok := strings.Cut(text, "=")
			if !ok {
				return fmt.Errorf("%q is not NAME=PATH", text)
			}
			servers = append(servers, cluster.Server{Name: name, Path: path})
			return nil
		})
	dir := flags.String("dir", "", "directory for the data")
	size := flags.Int("members", 5, "members of each cluster")
	trip := flags.Duration("trip", 50*time.Millisecond, "round trip between any two of members and client")
	writers := flags.Int("clients", 4, "writers, on one connection to each member")
	natives := flags.Int("natives", 1, "clients of its own among which the writers are spread")
	length := flags.Duration("duration", 10*time.Second, "how long to measure each row")
	beside := flags.Bool("beside", false, "the client is in the site of the member that it asks")
	reads := flags.Bool("reads", false, "measure linearizable reads, too")
	geo := flags.Bool("regions", false, "five members in five regions of the world, and clients beside each of them")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *dir == "" || len(servers) == 0 {
		return errors.New("far: --server and --dir are required")
	}
	if *geo {
		fmt.Printf("%s, led from %s, %d writers, %s; %s\n\n", strings.Join(sites, ", "), sites[leadingSite], *writers, *length,
			cluster.Machine())
	} else {
		fmt.Printf("%d members, every round trip %s, %d writers, %s; %s\n\n", *size, *trip, *writers, *length,
			cluster.Machine())
	}
	fmt.Printf("%-9s %-33s %8s %8s %8s %8s  %s\n", "server", "what", "p50 ms", "p90 ms", "p99 ms", "done", "")
	for _, s := range servers {
		f := farLoad{server: s.Name, writers: *writers, natives: *natives, delay: *trip / 2, length: *length, reads: *reads}
		if f.clientDelay = f.delay; *beside {
			f.clientDelay = 0
		}
		run := func() error { return f.measure(ctx, s, *dir, *size) }
		if *geo {
			run = func() error { return f.measureRegions(ctx, s, *dir) }
		}
		if err := run(); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	if *geo {
		return nil
	}
	ms := float64(trip.Microseconds()) / 1000
	fmt.Printf("\nBy arithmetic alone: one round trip %.0f ms, two %.0f, three %.0f.\n", ms, 2*ms, 3*ms)
	return nil
}
