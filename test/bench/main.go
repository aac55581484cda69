package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/quorate/quorate/test/slowsync"
)

func main() {
	slowsync.Main()
	// The client logs each retry of a request that a killed member took along, which is what we came to see.
	if err := os.Setenv("ETCD_CLIENT_DEBUG", "fatal"); err != nil {
		fail(err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if len(os.Args) < 2 {
		usage(os.Stderr)
		os.Exit(2)
	}
	table := commands()
	execute := map[string]func(context.Context, []string) error{
		"etcd": buildReference, attackerCommand: attackHere, "workloads": listAll,
	}[os.Args[1]]
	if c := commandOf(table, os.Args[1]); c != nil {
		execute = func(ctx context.Context, arguments []string) error { return c.execute(ctx, table, arguments) }
	}
	if execute == nil {
		usage(os.Stderr)
		os.Exit(2)
	}
	if err := execute(ctx, os.Args[2:]); err != nil {
		fail(err)
	}
}

// usage says which commands there are.
func usage(out io.Writer) {
	fmt.Fprint(out, "usage: go run . COMMAND --server NAME=PATH --server NAME=PATH --dir DIR [flags]\n")
	fmt.Fprint(out, "COMMAND --help lists them\n\n")
	for _, c := range commands() {
		fmt.Fprintf(out, "  %-10s %s\n", c.name, c.about)
	}
	fmt.Fprintf(out, "  %-10s %s\n", "workloads", "say what each command measures")
	fmt.Fprintf(out, "  %-10s %s\n", "etcd", "build the reference etcd: --out PATH")
}

// listAll prints the table of workloads.
func listAll(context.Context, []string) error {
	for _, c := range commands() {
		fmt.Printf("%s\n    %s\n", c.usage(), c.about)
		c.list(os.Stdout)
		fmt.Println()
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}
