package main

import (
	"bytes"
	"context"
	"errors"
	"expvar"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/logging"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/keysource"
	"github.com/quorate/quorate/internal/storage/snapshot"
	"github.com/quorate/quorate/internal/storage/wal"
)

// fakeMember ends when it is told to, or at once with an error.
type fakeMember struct {
	done    chan struct{}
	err     error
	stopped chan struct{} // Stop returns when this is closed; nil: at once
	onStop  func()
	stalled error
}

func (m *fakeMember) Done() <-chan struct{} { return m.done }
func (m *fakeMember) Err() error            { return m.err }

func (m *fakeMember) Stalled(time.Duration) error { return m.stalled }

func (m *fakeMember) Stop(context.Context) error {
	if m.stopped != nil {
		m.onStop()
		<-m.stopped
	}
	return nil
}

// withMember lets start answer with a member or an error for the time of a test.
func withMember(t *testing.T, m member, err error) {
	t.Helper()
	before := start
	start = func(context.Context, config.Config, memory.Shares, *logging.Log) (member, error) { return m, err }
	t.Cleanup(func() { start = before })
}

func runWith(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	status = run(args, command.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	return status, stdout.String(), stderr.String()
}

func TestRun_requests(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help"}} {
		status, out, _ := runWith(t, args...)
		for _, want := range []string{"quorate COMMAND [ARGS]", "\n  dev         Run a cluster", "--listen-client-urls URLS"} {
			if status != 0 || !strings.Contains(out, want) {
				t.Errorf("%q: got status %d and a help without %q", args, status, want)
			}
		}
	}
	for _, args := range [][]string{{"--version"}, {"version"}} {
		if status, out, _ := runWith(t, args...); status != 0 || !strings.Contains(out, "\netcd Version: 3.7.3\n") {
			t.Errorf("%q: got %d %q", args, status, out)
		}
	}
}

func TestRun_refusals(t *testing.T) {
	for _, row := range []struct {
		line   string
		status int
		want   string
	}{
		{"stauts", 2, "quorate: unknown command \"stauts\"; did you mean status?\n"},
		{"gateway start --endpoints=a", 2, "quorate: --endpoints a: address a: missing port in address\n"},
		{"grpc-proxy start --endpoints=a", 2, "quorate: --endpoints a: address a: missing port in address\n"},
		{"--nmae=x", 2, "quorate: unknown flag --nmae; did you mean --name?\n"},
		{"--cert-file=x", 2, "quorate: --cert-file needs --key-file\n"},
		{"--log-outputs=/absent/log", 1, "quorate: log to /absent/log: open /absent/log: no such file or directory\n"},
	} {
		status, out, errs := runWith(t, strings.Fields(row.line)...)
		if status != row.status || errs != row.want || out != "" {
			t.Errorf("%s: got %d %q %q, want %d %q", row.line, status, out, errs, row.status, row.want)
		}
	}
}

// Ensure that a server that cannot start ends in one plain line that says what to do.
func TestServe_startError(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string
	}{
		{errors.New("data belongs to cluster a"), "quorate: data belongs to cluster a"},
		{fmt.Errorf("listen on 127.0.0.1:2379: %w", syscall.EADDRINUSE),
			"quorate: listen on 127.0.0.1:2379: address already in use; stop the process that listens there, or choose"},
		{fmt.Errorf("listen: %w", syscall.EADDRNOTAVAIL), "must name an address of this machine"},
		{fmt.Errorf("--listen-client-urls http://127.0.0.1:79: %w", &net.OpError{Op: "listen", Err: fs.ErrPermission}),
			"may not listen there"},
		{&wal.CorruptError{File: "1.wal"}, "Never put a file back from a copy"},
		{fmt.Errorf("open: %w", snapshot.ErrStoreMissing), "move default.etcd aside, start this member with an empty " +
			"directory and its flags, --initial-cluster or --join among them, and run `quorate member reset default"},
		{fmt.Errorf("open: %w", wal.ErrNoLog), "Only if the log is lost for ever: Never put a file back"},
		{fmt.Errorf("open: %w", datadir.ErrLogElsewhere), "quorate: open: the log lies elsewhere\n"},
		{fmt.Errorf("open: %w", fs.ErrPermission), "make default.etcd writable"},
		{fmt.Errorf("key: %w", &fs.PathError{Op: "open", Path: "/etc/key", Err: fs.ErrPermission}),
			"quorate: key: open /etc/key: permission denied; give the user that runs this server access to it\n"},
		{&fs.PathError{Op: "open", Path: "/log/audit", Err: syscall.ENOSPC}, "quorate: open /log/audit: no space left on device\n"},
		{&fs.PathError{Op: "open", Path: "default.etcd/x", Err: fs.ErrPermission}, "make default.etcd writable"},
		{fmt.Errorf("open: %w", keysource.ErrNoKeyFile),
			"Put the key file (or default.etcd/keyring, in its newest state) back, or correct the flag. If it is lost for ever"},
		{fmt.Errorf("ring: %w b", atrest.ErrOtherKey), "move default.etcd aside, start this member with a new key, an empty " +
			"directory and its flags, --initial-cluster or --join among them, and run `quorate member reset default` at a"},
		{fmt.Errorf("ring: %w", atrest.ErrDamagedRing), "at a member that serves; else a backup has the data"},
		{fmt.Errorf("boots: %w", atrest.ErrEncrypted), "quorate member reset default"},
		{fmt.Errorf("write: %w", syscall.ENOSPC), "make room on the disk of default.etcd"},
		{fmt.Errorf("write: %w", syscall.EROFS), "must be on a disk that can be written to"},
	} {
		withMember(t, nil, row.err)
		status, _, errs := runWith(t, "--log-outputs=stdout")
		if status != 1 || !strings.Contains(errs, row.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("got %d %q, want one line with %q", status, errs, row.want)
		}
	}
}

// Ensure that a log file ends with the reason why the process ended, and that standard error has it once.
func TestServe_lastWordsInFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	withMember(t, nil, fmt.Errorf("listen on 127.0.0.1:2379: %w", syscall.EADDRINUSE))
	_, _, errs := runWith(t, "--log-outputs="+path+",stderr")
	content, err := os.ReadFile(path)
	const want = "stop the process that listens there"
	if err != nil || strings.Count(string(content), want) != 1 || strings.Count(errs, want) != 1 {
		t.Errorf("file %s, %v, standard error %s; want the reason once in each", content, err, errs)
	}
}

// Ensure that flags before a command, which other programs take there, are taken for the command's, and that a value of a flag is no
// command.
func TestRun_flagsFirst(t *testing.T) {
	const nobody = "--endpoints=127.0.0.1:1"
	for _, row := range []struct {
		line   string
		status int
		want   string
	}{
		{"--timeout=100ms " + nobody + " status", command.StatusUnreachable, "cannot reach 127.0.0.1:1"},
		{"--timeout 100ms " + nobody + " put a 1", command.StatusUnreachable, "cannot reach 127.0.0.1:1"},
		{"--timeout 100ms --password put " + nobody + " --user get:x get a", command.StatusUsage, "name two passwords"},
		{"-o json " + nobody + " member list", command.StatusUnreachable, "cannot reach 127.0.0.1:1"},
		{"--data-dir /nowhere recover --yes", 1, "/nowhere"},
		{"--nmae=a", command.StatusUsage, "did you mean --name?"},
		{"--nmae=a status", command.StatusUsage, "unknown flag: --nmae; see quorate status --help"},
	} {
		if status, _, errs := runWith(t, strings.Fields(row.line)...); status != row.status || !strings.Contains(errs, row.want) {
			t.Errorf("quorate %s: got %d %q, want %d and %q", row.line, status, errs, row.status, row.want)
		}
	}
}

// Ensure that a server that ends by itself ends the process with its reason.
func TestServe_ends(t *testing.T) {
	done := make(chan struct{})
	close(done)
	withMember(t, &fakeMember{done: done, err: errors.New("the disk failed")}, nil)
	if status, _, errs := runWith(t, "--log-outputs=stdout"); status != 1 || errs != "quorate: the disk failed\n" {
		t.Errorf("got %d %q", status, errs)
	}
	withMember(t, &fakeMember{done: done}, nil)
	status, out, errs := runWith(t, "--log-outputs=stdout", "--snapshot-catchup-entries=1000", "--max-snapshots=7")
	if status != 0 || errs != "" {
		t.Errorf("a removed member: got %d %q", status, errs)
	}
	for _, want := range []string{`"msg":"starting"`, `"snapshot-catchup-entries":1000`, `"v2-deprecation":"write-only"`,
		"--max-snapshots is deprecated in 3.6 and will be decommissioned in 3.8", `{"level":"info","ts":"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the log lacks %s:\n%s", want, out)
		}
	}
}

// Ensure that the first signal stops the server and a second one does not wait for it.
func TestRunMember_signals(t *testing.T) {
	var log bytes.Buffer
	logger := &logging.Log{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	first, second := make(chan os.Signal, 1), make(chan os.Signal, 1)
	withMember(t, &fakeMember{}, nil)
	first <- syscall.SIGTERM
	if err := runMember(config.Default(), logger, first, second); err != nil ||
		!strings.Contains(log.String(), "stopped") {
		t.Errorf("one signal: got %v, log %s", err, &log)
	}
	stuck := &fakeMember{stopped: make(chan struct{}), onStop: func() { second <- syscall.SIGTERM }}
	defer close(stuck.stopped)
	withMember(t, stuck, nil)
	first <- syscall.SIGTERM
	if err := runMember(config.Default(), logger, first, second); !errors.Is(err, errImpatient) {
		t.Errorf("two signals: got %v, want %v", err, errImpatient)
	}
}

// Ensure that the real signals arrive, and that a signal's echo is not taken for a second one.
func TestWatchSignals(t *testing.T) {
	late := make(chan os.Signal, 2) // one that arrives after the release must not end the tests
	signal.Notify(late, syscall.SIGTERM)
	in := watchSignals()
	defer in.release()
	for range 2 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-in.first; got != syscall.SIGTERM {
		t.Errorf("got %v", got)
	}
	if len(in.second) != 0 {
		t.Error("the echo was taken for a second signal")
	}
}

func TestCalledAs(t *testing.T) {
	for path, want := range map[string]string{
		"./quorate": "./quorate",
		"/tmp/go-build556746291/b001/exe/quorate": "go run ./cmd/quorate",
	} {
		if got := calledAs(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// Ensure that a process shows no secret of its command line, and gets it nevertheless.
func TestArguments_secrets(t *testing.T) {
	before := os.Args
	defer func() { os.Args = before }()
	os.Args = []string{"quorate", "--name=m", "--join-token=12345678.s3cret"}
	args := arguments()
	shown := expvar.Get("cmdline").String()
	if args[1] != "--join-token=12345678.s3cret" || strings.Contains(shown, "s3cret") || !strings.Contains(shown, "--name=m") {
		t.Errorf("the process gets %q, and shows %s", args, shown)
	}
}
