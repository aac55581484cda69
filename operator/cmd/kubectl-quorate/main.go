// Command kubectl-quorate is quorate's command line for clusters in Kubernetes: kubectl calls it for `kubectl quorate`, and, by
// a link named kubectl_complete-quorate, for completions of that.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/etcdctl"
	"github.com/quorate/quorate/operator/internal/plugin"
)

func main() {
	args := os.Args[1:]
	switch filepath.Base(os.Args[0]) {
	case plugin.CalledEtcdctl: // by this program
		os.Exit(etcdctl.Run("kubectl quorate CLUSTER etcdctl", args))
	case "kubectl_complete-quorate":
		args = append([]string{"__complete"}, args...)
	}
	streams := command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Self: "kubectl quorate",
		Terminal: term.IsTerminal(int(os.Stdout.Fd())), Attended: term.IsTerminal(int(os.Stdin.Fd()))}
	if streams.Attended {
		streams.Secret = command.AskSecret
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, cancel) // a second signal ends the process
	status := plugin.Run(ctx, args, streams, plugin.FromKubeconfig)
	cancel()
	os.Exit(status)
}
