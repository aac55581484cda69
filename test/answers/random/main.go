// Command random draws requests and compares what two clusters answer to them, byte for byte: one of etcd and one of Quorate.
//
// Both get the same requests in the same order, each at the member of the same number. Compared are responses with their
// headers' revisions, codes and texts of errors, and the events of watches. Values that belong to a cluster or a clock are set
// to fixed ones first: ids of clusters and members, terms, tokens, and what leases have left of their TTL. Requests whose
// answers differ on purpose are not drawn: docs/compatibility.md names them.
//
//	go run ./test/answers/random -etcd PATH                       a cluster of one each
//	go run ./test/answers/random -etcd PATH -members 3 -users     three members, calls by users with few rights
//
// The exit status is 1 if an answer differs. The seed is printed; the same seed draws the same requests.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"time"
)

var (
	etcd     = flag.String("etcd", "", "the binary of etcd; required")
	quorate  = flag.String("quorate", "", "the binary of Quorate; built if empty")
	members  = flag.Int("members", 1, "members of each cluster")
	users    = flag.Bool("users", false, "turn users on")
	requests = flag.Int("requests", 5000, "how many requests are drawn")
	seed     = flag.Int64("seed", 1, "number that decides which requests are drawn")
	most     = flag.Int("differences", 10, "stop after this many differences")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "random:", err)
		os.Exit(1)
	}
}

func run() error {
	if *etcd == "" {
		return fmt.Errorf("-etcd is missing")
	}
	dir, err := os.MkdirTemp("", "quorate-random-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if *quorate == "" {
		*quorate = filepath.Join(dir, "quorate")
		if err = build(*quorate); err != nil {
			return err
		}
	}
	pair := [2]*cluster{}
	for i, program := range []string{*etcd, *quorate} {
		pair[i], err = start(program, filepath.Join(dir, fmt.Sprint(i)), *members)
		defer pair[i].stop()
		if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	c := comparison{clusters: pair, members: *members, requests: *requests, most: *most,
		draw: drawer{rng: rand.New(rand.NewSource(*seed)), users: *users}}
	if err = c.run(ctx); err != nil {
		return err
	}
	fmt.Printf("seed %d: %d requests, %d with errors, %d events of watches, %d differences\n",
		*seed, c.asked, c.failed, c.events, c.different)
	if c.different > 0 {
		return fmt.Errorf("answers differ")
	}
	return nil
}
