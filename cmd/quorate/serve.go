package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/logging"
	core "github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/server"
)

// member is a running server.
type member interface {
	Stop(context.Context) error // hands leadership over and ends
	Done() <-chan struct{}      // closed when the server has ended, for whatever reason
	Err() error                 // why it ended; nil after Stop
}

// start starts the server of a configuration. Tests replace it.
var start = func(ctx context.Context, c config.Config, logger *slog.Logger) (member, error) {
	return server.Start(ctx, c, server.Options{Logger: logger, Fatal: func(err error) {
		os.Exit(fail(ctl.Streams{Err: os.Stderr}, explain(c, err)))
	}})
}

// stopLimit bounds a graceful stop; a supervisor's patience usually ends soon after.
const stopLimit = 10 * time.Second

// serve runs a member until it is told to stop or fails.
func serve(args []string, s ctl.Streams) int {
	c, err := config.Load(args, s.Environ)
	var usage *config.UsageError
	var faults config.Faults
	switch {
	case errors.Is(err, config.ErrHelp):
		writeHelp(s.Out)
		return ctl.StatusOK
	case errors.Is(err, config.ErrVersion):
		config.WriteVersion(s.Out)
		return ctl.StatusOK
	case errors.As(err, &usage), errors.As(err, &faults):
		fmt.Fprintf(s.Err, "quorate: %v\n", err)
		return ctl.StatusUsage
	case err != nil:
		return fail(s, err)
	}
	logger, files, err := logging.Open(logging.Options{Level: c.LogLevel, Format: logging.Format(c.LogFormat),
		Outputs: c.LogOutputs, Stdout: s.Out, Stderr: s.Err})
	if err != nil {
		return fail(s, err)
	}
	defer files.Close()
	signals := watchSignals()
	defer signals.release()
	if err := runMember(c, logger, signals.first, signals.second); err != nil {
		if errors.Is(err, core.ErrRemoved) {
			fail(s, err)
			return ctl.StatusRemoved
		}
		return fail(s, explain(c, err))
	}
	return ctl.StatusOK
}

// fail says why the server ended, in one line: supervisors and log shippers take the last one.
func fail(s ctl.Streams, err error) int {
	fmt.Fprintf(s.Err, "quorate: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	return 1
}

// errImpatient ends a stop that a second signal has cut short.
var errImpatient = errors.New("stopped at once by a second signal; the next start recovers from the log")

// startUntil starts the server; a signal while it waits for the rest of the cluster ends that, and is no failure.
func startUntil(first, second <-chan os.Signal, c config.Config, logger *slog.Logger) (member, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type outcome struct {
		m   member
		err error
	}
	started := make(chan outcome, 1)
	go func() {
		m, err := start(ctx, c, logger)
		started <- outcome{m, err}
	}()
	select {
	case o := <-started:
		if o.err != nil {
			return nil, o.err
		}
		return o.m, nil
	case got := <-first:
		logger.Info("stopping before the member was ready", "signal", got.String())
		cancel()
	}
	select {
	case o := <-started:
		if o.err != nil {
			return nil, nil // the error is that it was cancelled
		}
		return nil, stopMember(o.m, second, logger)
	case <-second:
		return nil, errImpatient
	}
}

// runMember starts the server and stops it at the first signal; at a second one it does not wait for the stop.
func runMember(c config.Config, logger *slog.Logger, first, second <-chan os.Signal) error {
	boundHeap()
	logger.Info("starting", "version", config.Version, "etcd-version", config.EtcdVersion, "git-sha",
		config.Revision(), "go-version", runtime.Version(), "name", c.Name, "data-dir", c.DataDir, "config-file", c.File(),
		"snapshot-catchup-entries", numberOrText(c.Compat("snapshot-catchup-entries")),
		"v2-deprecation", c.Compat("v2-deprecation"))
	for _, w := range c.Warnings {
		logger.Warn(w)
	}
	m, err := startUntil(first, second, c, logger)
	if m == nil || err != nil {
		return err
	}
	select {
	case <-m.Done():
		return m.Err()
	case got := <-first:
		logger.Info("stopping", "signal", got.String())
	}
	return stopMember(m, second, logger)
}

// stopMember stops gracefully, unless a second signal says that nobody wants to wait for that.
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
