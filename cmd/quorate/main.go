// Command quorate is a distributed key-value store that speaks etcd's API. With flags alone it runs a member, and its
// flags are etcd's; with a command as first argument it is a development cluster, a client, or a tool.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/etcdctl"
)

func main() {
	if name := program(os.Args[0]); name == "etcdctl" {
		os.Exit(etcdctl.Run(name, os.Args[1:]))
	}
	streams := command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Self: calledAs(os.Args[0]),
		Terminal: term.IsTerminal(int(os.Stdout.Fd())), Attended: term.IsTerminal(int(os.Stdin.Fd()))}
	if streams.Attended {
		streams.Secret = command.AskSecret
	}
	args := arguments()
	if program(os.Args[0]) == "etcdutl" {
		args = append([]string{"etcdutl"}, args...)
	}
	os.Exit(run(args, streams))
}

// arguments are those of this process, in which secrets are blank from now on: /debug/vars and profiles show them.
func arguments() []string {
	args := slices.Clone(os.Args[1:])
	copy(os.Args[1:], config.BlankSecrets(args))
	return args
}

// program is the name of the file that was called, which may be a link.
func program(path string) string { return strings.TrimSuffix(filepath.Base(path), ".exe") }

// calledAs returns what a person types to run this program again: "go run" puts it where it is gone a moment later.
func calledAs(path string) string {
	if strings.Contains(path, "go-build") {
		return "go run ./cmd/quorate"
	}
	return path
}

// run chooses between the server and the commands and returns the exit status.
func run(args []string, s command.Streams) int {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if args[0] == "help" && len(args) == 1 {
			writeHelp(s.Out)
			return command.StatusOK
		}
		switch args[0] {
		case recoverName:
			return runCommand(args[1:], s, recoverQuorum)
		case addressName:
			return runCommand(args[1:], s, setAddress)
		}
		if ctl.Known(args[0]) {
			return runCommand(args, s, func(ctx context.Context, args []string, s command.Streams) int {
				return ctl.RunWith(ctx, args, s, ctl.Tools{Restore: restoreSnapshot, Verify: verifyBackup, Past: readBackup,
					GRPCProxy: runGRPCProxy, Preview: preview, Inspect: inspectStopped})
			})
		}
		near := ctl.Suggest(args[0])
		if near == "" {
			near = config.Nearest(args[0], []string{recoverName, addressName})
		}
		if near != "" {
			fmt.Fprintf(s.Err, "quorate: unknown command %q; did you mean %s?\n", args[0], near)
			return command.StatusUsage
		}
	}
	if ctl.IsEtcdctls(args, s) { // it begins with flags
		return runCommand(args, s, ctl.Run)
	}
	if line, ok := commandFirst(args, s); ok {
		return run(line, s)
	}
	return serve(args, s)
}

// commandFirst puts a command before the flags that precede it, as other programs take them. Nothing is changed if no
// command is there, or if the line is a server's as it is: a word may be the value of a flag.
func commandFirst(args []string, s command.Streams) (line []string, ok bool) {
	var usage *config.UsageError
	if _, err := config.Load(args, s.Environ); !errors.As(err, &usage) {
		return nil, false
	}
	for i, word := range args {
		if i == 0 || strings.HasPrefix(word, "-") || !ctl.Known(word) && word != recoverName && word != addressName {
			continue
		}
		line := moveBehind(args[:i], args[i:])
		before := args[i-1]
		if strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && ctl.TakesValue(line, before) {
			continue // the word is what the flag is set to
		}
		return line, true
	}
	return nil, false
}

// moveBehind puts flags behind a command, and before the words that a -- keeps from being flags.
func moveBehind(flags, rest []string) []string {
	if i := slices.Index(rest, "--"); i >= 0 {
		return slices.Concat(rest[:i], flags, rest[i:])
	}
	return slices.Concat(rest, flags)
}

// runCommand gives a command a context that ends with the first signal; a second signal ends the process.
func runCommand(args []string, s command.Streams, command func(context.Context, []string, command.Streams) int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := watchSignals()
	defer signals.release()
	go func() {
		select {
		case <-signals.first:
			cancel()
		case <-ctx.Done():
			return
		}
		<-signals.second
		os.Exit(statusInterrupted)
	}()
	return command(ctx, args, s)
}

const statusInterrupted = 130

func writeHelp(w io.Writer) {
	fmt.Fprint(w, `Quorate is a distributed key-value store that speaks etcd's API.

Usage:
  quorate [FLAGS]              run a member
  quorate COMMAND [ARGS]       see quorate COMMAND --help

Commands:
`)
	ctl.WriteCommands(w)
	fmt.Fprintf(w, "  %-11s %s\n", recoverName, recoverShort)
	fmt.Fprintf(w, "  %-11s %s\n", addressName, addressShort)
	fmt.Fprint(w, `
Commands of etcdctl, with its flags, formats and exit statuses; get, put, member and others are etcdctl's, too,
where a line has a flag that only etcdctl's have, such as --write-out; quorate etcdctl, or a link of that name, is all of it:
`)
	ctl.WriteEtcdctl(w)
	fmt.Fprint(w, `
Try it: quorate dev runs a cluster of three on this machine.

Every flag can also be set in the environment: --listen-client-urls is ETCD_LISTEN_CLIENT_URLS. A flag beats the
environment; a configuration file replaces both. quorate config print shows the result.

`)
	config.WriteHelp(w)
}
