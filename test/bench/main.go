package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/quorate/quorate/test/bench/slowsync"
)

const usage = `usage:
  go run . run --server etcd=PATH --server quorate=PATH --dir DIR [flags]   measure; run --help lists the flags
  go run . etcd --out PATH                                                  build the reference etcd
  go run . far --server NAME=PATH --dir DIR [flags]                         writes of a client that is far away; --help
  go run . k8s --server NAME=PATH --server NAME=PATH --dir DIR [flags]      the load of a Kubernetes control plane; --help
  go run . life --server NAME=PATH --server NAME=PATH --dir DIR [flags]     a put until its version is deleted; --help
  go run . narrow --server NAME=PATH --server NAME=PATH --dir DIR [flags]    links of few bytes a second; --help
  go run . native --server NAME=PATH --server NAME=PATH --dir DIR [flags]    puts with the native client; --help
  go run . slow --server NAME=PATH --server NAME=PATH --dir DIR [flags]     while some disks are slow; --help
  go run . memory --server NAME=PATH --dir DIR [flags]                      how much of --memory is taken; --help
  go run . hold --server quorate=PATH --dir DIR [flags]                     attacks on what a member holds for clients; --help
  go run . pictures --server NAME=PATH --server NAME=PATH --dir DIR --out DIR   measure and draw; --help
  go run . table --server NAME=PATH --server NAME=PATH --dir DIR    every row of the table of goals: 25 minutes; --help
  go run . bytes --server NAME=PATH --server NAME=PATH --dir DIR [flags]     bytes between five sites; --help
  go run . protocols --server quorate=PATH --dir DIR [flags]                membership changes by each protocol; --help
  go run . routes --server PATH --dir DIR [flags]                           how often the fast path decides; --help
`

func main() {
	slowsync.Main()
	// The client logs each retry of a request that a killed member took along, which is what we came to see.
	if err := os.Setenv("ETCD_CLIENT_DEBUG", "fatal"); err != nil {
		fail(err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	commands := map[string]func(context.Context, []string) error{
		"run": measure, "etcd": buildReference, "routes": routes, "far": far, "k8s": kubernetes, "life": life,
		"slow": slow, "native": native, "memory": memoryLimits, "hold": hold, attackerCommand: attackHere,
		"pictures": drawPictures, "table": goalTable, "bytes": siteBytes, "narrow": narrow, "protocols": protocols,
	}
	command := commands[os.Args[1]]
	if command == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := command(ctx, os.Args[2:]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}
