package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/quorate/quorate/internal/base/logpace"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/logging"
	"github.com/quorate/quorate/internal/limits/memory"
	core "github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/server"
)

// member is a running server.
type member interface {
	Stop(context.Context) error // hands leadership over and ends
	Done() <-chan struct{}      // closed when the server has ended, for whatever reason
	Err() error                 // why it ended; nil after Stop
	// Stalled returns what has made no progress for longer than limit.
	Stalled(limit time.Duration) error
}

// start starts the server of a configuration. Tests replace it.
var start = func(ctx context.Context, c config.Config, shares memory.Shares, log *logging.Log) (member, error) {
	return server.Start(ctx, c, server.Options{
		Logger: log.Logger, LogDropped: log.Dropped, Memory: shares,
		Fatal: func(err error) {
			err = explain(c, err)
			log.Last(err)
			_ = log.Close() // what it logged last comes before the reason
			os.Exit(fail(command.Streams{Err: os.Stderr}, err))
		},
	})
}

// stopLimit bounds a graceful stop; a supervisor's patience usually ends soon after.
const stopLimit = 10 * time.Second

// serve runs a member until it is told to stop or fails.
func serve(args []string, s command.Streams) int {
	c, err := config.Load(args, s.Environ)
	var usage *config.UsageError
	var faults config.Faults
	switch {
	case errors.Is(err, config.ErrHelp):
		writeHelp(s.Out)
		return command.StatusOK
	case errors.Is(err, config.ErrVersion):
		config.WriteVersion(s.Out)
		return command.StatusOK
	case errors.As(err, &usage), errors.As(err, &faults):
		fmt.Fprintf(s.Err, "quorate: %v\n", err)
		return command.StatusUsage
	case err != nil:
		return fail(s, err)
	}
	rotation, err := c.LogRotation()
	if err != nil {
		return fail(s, err)
	}
	log, err := logging.Open(logging.Options{Level: c.Monitoring.LogLevel, Format: logging.Format(c.Monitoring.LogFormat),
		Outputs: c.Monitoring.LogOutputs, Rotation: (*logging.Rotation)(rotation), Stdout: s.Out, Stderr: s.Err})
	if err != nil {
		return fail(s, err)
	}
	// A member outlives the reader of its log: a write to a pipe that was closed is an error, not the end.
	signal.Ignore(syscall.SIGPIPE)
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, logpace.Writer(log.Logger, "grpc: ")))
	signals := watchSignals()
	defer signals.release()
	err = runMember(c, log, signals.first, signals.second)
	if err != nil && !errors.Is(err, core.ErrRemoved) {
		err = explain(c, err)
	}
	log.Last(err)
	removed := errors.Is(err, core.ErrRemoved)
	if err = errors.Join(err, log.Close()); err == nil {
		return command.StatusOK
	}
	status := fail(s, err)
	if removed {
		return command.StatusRemoved
	}
	return status
}

// lastWordPatience is how long a process that ends waits for its standard error to take the reason.
const lastWordPatience = time.Second

// fail says why the server ended, in one line: supervisors and log shippers take the last one.
func fail(s command.Streams, err error) int {
	said := make(chan struct{})
	go func() {
		defer close(said)
		fmt.Fprintf(s.Err, "quorate: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	}()
	select {
	case <-said:
	case <-time.After(lastWordPatience):
	}
	return 1
}

// errImpatient ends a stop that a second signal has cut short.
var errImpatient = errors.New("stopped at once by a second signal; the next start recovers from the log")

// startUntil starts the server; a signal while it waits for the rest of the cluster ends that, and is no failure.
func startUntil(
	first, second <-chan os.Signal, c config.Config, shares memory.Shares, log *logging.Log,
) (member, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type outcome struct {
		m   member
		err error
	}
	started := make(chan outcome, 1)
	go func() {
		m, err := start(ctx, c, shares, log)
		started <- outcome{m, err}
	}()
	select {
	case o := <-started:
		if o.err != nil {
			return nil, o.err
		}
		return o.m, nil
	case got := <-first:
		log.Info("stopping before the member was ready", "signal", got.String())
		cancel()
	}
	select {
	case o := <-started:
		if o.err != nil {
			return nil, nil // the error is that it was cancelled
		}
		return nil, stopMember(o.m, second, log.Logger)
	case <-second:
		return nil, errImpatient
	}
}

// runMember starts the server and stops it at the first signal; at a second one it does not wait for the stop.
func runMember(c config.Config, log *logging.Log, first, second <-chan os.Signal) error {
	shares, err := divideMemory(c.Limits.Memory, log.Logger)
	if err != nil {
		return err
	}
	memory.Govern(shares)
	log.Info("starting", "version", config.Build(), "etcd-version", config.EtcdVersion, "git-sha",
		config.Revision(), "go-version", runtime.Version(), "name", c.Name, "data-dir", c.Storage.DataDir,
		"config-file", c.File(), "memory-bytes", shares.Limit,
		"snapshot-catchup-entries", numberOrText(c.Compat("snapshot-catchup-entries")),
		"v2-deprecation", c.Compat("v2-deprecation"))
	for _, w := range c.Warnings {
		log.Warn(w)
	}
	if !memory.HeapHasAll {
		log.Warn("this binary was built with cgo: the C library keeps memory that the store has freed, and --memory does not " +
			"bound that; build with CGO_ENABLED=0")
	}
	m, err := startUntil(first, second, c, shares, log)
	if m == nil || err != nil {
		return err
	}
	tellSupervisor(log.Logger)
	defer tellWatchdog(m.Stalled, log.Logger)()
	select {
	case <-m.Done():
		return m.Err()
	case got := <-first:
		log.Info("stopping", "signal", got.String())
	}
	return stopMember(m, second, log.Logger)
}

// divideMemory says what the parts of this member may have.
func divideMemory(given config.Memory, logger *slog.Logger) (memory.Shares, error) {
	limit, err := memoryLimit(given, logger)
	if err != nil {
		return memory.Shares{}, err
	}
	return memory.Divide(limit), nil
}

// memoryLimit says how many bytes this process may have that was given so much by --memory.
func memoryLimit(given config.Memory, logger *slog.Logger) (int64, error) {
	host := memory.Host{Files: os.DirFS("/")}
	limit, err := memory.Limit(given.Bytes, given.Percent, host.Available)
	if err != nil {
		return 0, fmt.Errorf("--memory %v: %w", given, err)
	}
	if available, err := host.Available(); err == nil && limit > available {
		logger.Warn("this process may take more memory than there is: lower --memory, or the system may end it",
			"memory-bytes", limit, "available-bytes", available)
	}
	return limit, nil
}

// stopMember stops gracefully, unless a second signal says that the operator does not want to wait for that.
func stopMember(m member, second <-chan os.Signal, logger *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- m.Stop(ctx) }()
	select {
	case err := <-stopped:
		logger.Info("stopped")
		return err
	case <-second:
		return errImpatient
	}
}
