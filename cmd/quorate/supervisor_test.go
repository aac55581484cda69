package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/logging"
)

// Ensure that systemd's watchdog hears of a member that makes progress, hears nothing while it hangs, and hears of it again.
func TestReportProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 40 * time.Second
		var log bytes.Buffer
		var hangs atomic.Pointer[error] // time alone does not order what the goroutines do
		var reports atomic.Int64
		hangs.Store(new(error))
		ctx, cancel := context.WithCancel(t.Context())
		go reportProgress(ctx, interval, func(limit time.Duration) error {
			if limit != interval/2 {
				t.Errorf("a goroutine may hang for %v, want half of %v", limit, interval)
			}
			return *hangs.Load()
		}, slog.New(slog.NewTextHandler(&log, nil)), func(state string) error {
			if state != "WATCHDOG=1" {
				t.Errorf("told %q", state)
			}
			reports.Add(1)
			return nil
		})
		<-time.After(time.Second) // never at the moment of a report
		for _, row := range []struct {
			hangs error
			want  int64 // in an interval
		}{{nil, 4}, {errors.New("the loop hangs"), 0}, {nil, 4}} {
			synctest.Wait()
			hangs.Store(&row.hangs)
			reports.Store(0)
			<-time.After(interval)
			synctest.Wait()
			if got := reports.Load(); got != row.want {
				t.Errorf("%d reports in an interval while %v, want %d", got, row.hangs, row.want)
			}
		}
		cancel()
		synctest.Wait()
		if got := strings.Count(log.String(), "the loop hangs"); got != 1 {
			t.Errorf("the log says it %d times:\n%s", got, &log)
		}
	})
}

// Ensure that a process which systemd started with a watchdog tells it so by the socket, first that it serves, and that it ends
// although systemd reads nothing any more.
func TestRunMember_watchdog(t *testing.T) {
	address := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	socket, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	t.Setenv("NOTIFY_SOCKET", address.Name)
	t.Setenv("WATCHDOG_USEC", "200000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	withMember(t, &fakeMember{}, nil)
	first, ended := make(chan os.Signal, 1), make(chan error, 1)
	go func() {
		ended <- runMember(config.Default(), &logging.Log{Logger: slog.New(slog.DiscardHandler)}, first, nil)
	}()
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		words := make([]byte, 64)
		n, err := socket.Read(words)
		if got := string(words[:n]); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	flood(t, address)
	first <- syscall.SIGTERM
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the process waits for a supervisor that reads nothing")
	}
}

// flood fills the queue of a socket, and waits until the next report of the process must be waiting for room.
func flood(t *testing.T, address *net.UnixAddr) {
	t.Helper()
	conn, err := net.DialUnix("unixgram", nil, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for err == nil { // it ends when nothing was read for several intervals
		if err = conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err == nil {
			_, err = conn.Write([]byte("FULL=1"))
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}
