package shipper_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup/feed"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/server/shipper"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

// fast is a clock of which a minute is a second.
type fast struct {
	env.WallClock
	began time.Time
}

// Now implements env.Clock.
func (f fast) Now() time.Time { return f.began.Add(60 * time.Since(f.began)) }

// heedless is a place that heeds no cancel.
type heedless struct{ objects.Store }

// List implements objects.Store.
func (h heedless) List(_ context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	return h.Store.List(context.Background(), prefix, after, limit)
}

// gaveUp is closed by the line that says that operations were given up.
type gaveUp chan struct{}

// Write implements io.Writer.
func (g gaveUp) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "given up") && strings.Contains(string(p), "level=WARN") {
		g <- struct{}{}
	}
	return len(p), nil
}

// within waits for what should come soon.
func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatal(what + " does not come")
	}
}

// Ensure that a member whose place hangs, and heeds no cancel, opens it again in its next turn, and ends; and that the
// operations end later without anybody who waits for them.
func TestShipper_Run_hangs(t *testing.T) {
	asked, goes, freed := make(chan struct{}, 9), make(chan struct{}), make(chan struct{}, 9)
	var row atomic.Pointer[kv.BackupRow]
	set := func(turn, member uint64) {
		row.Store(&kv.BackupRow{Generation: 1, Turn: turn, Member: member, Policy: kv.BackupPolicy{On: true, Place: "file:///b",
			BaseSeconds: 3600, SealMillis: 1000}})
	}
	set(1, 3)
	log := make(gaveUp, 9)
	s := shipper.New(shipper.Options{Cluster: 7, Member: 3, Build: "1", Feed: feed.New(1 << 20), Row: row.Load,
		Propose: func(context.Context, *kv.Command) (kv.Result, error) { return kv.Result{}, nil },
		Open: func(string) (objects.Store, func(), error) {
			asked <- struct{}{}
			<-goes
			return heedless{objectstest.NewPlace(1, time.Now)}, func() { freed <- struct{}{} }, nil
		},
		FS: files.Disk, Dir: filepath.Join(t.TempDir(), "shipped"), HeldBytes: 1 << 20,
		Clock: fast{began: time.Now()}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	within(t, "the first turn", asked)
	set(2, 2)
	within(t, "the end of the turn", log)
	set(3, 3)
	within(t, "the second turn", asked)
	goes <- struct{}{}
	within(t, "what the first turn held", freed)
	cancel()
	within(t, "the end", ended)
	within(t, "a line about it", log)
	close(goes)
	within(t, "what the second turn held", freed)
}
