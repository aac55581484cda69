package shipper_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/feed"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/server/shipper"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/files/filestest"
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

// run runs a shipper until cancel is called, or the test ends.
func run(t *testing.T, s *shipper.Shipper) (cancel context.CancelFunc, ended <-chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Run(ctx)
	}()
	return cancel, over
}

// follow returns a feed that follows a state machine with a backup that is on.
func follow(t *testing.T) *feed.Feed {
	eng, err := engine.Open(engine.Options{FS: filestest.NewMem(), Dir: "/d"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := apply.Bootstrap(eng, 7, consensus.Config{Voters: []consensus.MemberID{3},
		Members: []consensus.Member{{ID: 3}}}); err != nil {
		t.Fatal(err)
	}
	m, err := apply.Open(eng, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	index := consensus.Index(0)
	do := func(c kv.Command) {
		index++
		results, err := m.Apply([]consensus.Entry{{Index: index, Term: 1, Kind: consensus.EntryCommand, Payload: c.Append(nil)}})
		if err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
	}
	now, err := level.ParsePolicy("now")
	if err != nil {
		t.Fatal(err)
	}
	do(kv.Command{Publish: &kv.PublishOp{Member: 3, Name: "m", Version: "3.7.1", Build: "b", Level: level.Second}})
	do(kv.Command{LevelPolicy: &kv.LevelPolicyOp{Policy: now, Of: m.LevelView()}})
	do(kv.Command{Raise: &kv.RaiseOp{Level: level.Second, Of: m.LevelView()}})
	do(kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupSet, Policy: kv.BackupPolicy{On: true, Place: "file:///b", BaseSeconds: 3600,
		SealMillis: 1000}}})
	f := feed.New(1 << 20)
	f.Begin(m)
	return f
}

// Ensure that a place that opened, and to which the member must not ship since it has an encrypted backup and the policy has no
// recipients, is freed before it is opened again, and once only; and that the reports say so.
func TestShipper_Run_refused(t *testing.T) {
	place := objectstest.NewPlace(1, time.Now)
	sealed := backup.BaseName{Cluster: 7, Point: backup.Point{Index: 1}, Set: 5}
	if err := place.Put(t.Context(), sealed.String(), strings.NewReader(""), 0); err != nil {
		t.Fatal(err)
	}
	row := kv.BackupRow{Generation: 1, Turn: 1, Member: 3, Policy: kv.BackupPolicy{On: true, Place: "file:///b", BaseSeconds: 3600,
		SealMillis: 1000}}
	var opens, most atomic.Int64
	again, said := make(chan struct{}, 99), make(chan struct{}, 99)
	s := shipper.New(shipper.Options{Cluster: 7, Member: 3, Build: "1", Feed: follow(t), Row: func() *kv.BackupRow { return &row },
		Propose: func(_ context.Context, c *kv.Command) (kv.Result, error) {
			if strings.Contains(c.Backup.Progress.Trouble, "the policy has no recipients") {
				said <- struct{}{}
			}
			return kv.Result{}, nil
		},
		Open: func(string) (objects.Store, func(), error) {
			most.Store(max(most.Load(), opens.Add(1)))
			again <- struct{}{}
			return place, func() { opens.Add(-1) }, nil
		},
		FS: files.Disk, Dir: filepath.Join(t.TempDir(), "shipped"), HeldBytes: 1 << 20,
		Clock: fast{began: time.Now()}, Logger: slog.New(slog.DiscardHandler)})
	cancel, ended := run(t, s)
	for range 3 {
		within(t, "the next try", again)
	}
	within(t, "a report", said)
	cancel()
	within(t, "the end", ended)
	if left := opens.Load(); left != 0 || most.Load() != 1 {
		t.Errorf("%d places are open at the end, and %d were at once", left, most.Load())
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
	cancel, ended := run(t, s)
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
