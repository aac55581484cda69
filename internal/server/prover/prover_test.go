package prover_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/server/prover"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

// member is one that is appointed to prove the backup in a place.
type member struct {
	t     *testing.T
	place *objectstest.Place
	heads []backup.Head
	row   *kv.BackupRow // of the goroutine of the Prover
	o     prover.Options
	ended context.CancelFunc
	room  error

	ahead     consensus.Index // applied entries behind those that were shipped
	otherwise uint64          // added to the sum of the own chain
}

func newMember(t *testing.T) *member {
	t.Helper()
	m := &member{t: t, place: objectstest.NewPlace(3, time.Now)}
	var commands []kv.Command
	for i := range 12 {
		commands = append(commands, kv.Command{Put: &kv.PutOp{Key: []byte{'k', byte(i)}, Value: []byte(strings.Repeat("v", 50))}})
	}
	m.heads = backuptest.Ship(t, m.place, commands)
	m.row = &kv.BackupRow{Generation: 1, Policy: kv.BackupPolicy{On: true, Place: "file:///b"},
		Proofs: kv.BackupProofs{Number: 7, Member: 3}}
	for _, b := range m.catalog().Bases {
		m.row.Known = append(m.row.Known, kv.BackupBase{Index: uint64(b.Index), Hash: b.Hash})
	}
	m.o = prover.Options{Cluster: backuptest.Cluster, Member: 3, Row: func() *kv.BackupRow { return m.row },
		Propose: m.apply, FS: files.Disk, Dir: filepath.Join(t.TempDir(), "proved"),
		Open: func(string) (objects.Store, func(), error) { return m.place, func() {}, nil },
		OpenEngine: func(dir string, fatal func(error)) (engine.Engine, error) {
			return engine.Open(engine.Options{FS: files.Disk, Dir: dir, OnFatal: fatal})
		},
		Chain: m.chainAt, Again: time.Millisecond,
		Room:        func(int64) error { return m.room },
		ObjectBytes: 1 << 20, Clock: env.WallClock{}, Logger: slog.New(slog.DiscardHandler)}
	return m
}

func (m *member) apply(_ context.Context, command *kv.Command) (kv.Result, error) {
	next, ok := m.row.Next(command.Backup, func(uint64) bool { return false })
	if !ok {
		return kv.Result{Err: kv.ErrBadCommand}, nil
	}
	m.row = &next
	m.ended()
	return kv.Result{}, nil
}

// chainAt is the chain of a member that has applied all that was shipped.
func (m *member) chainAt(index consensus.Index) (consensus.Index, apply.ChainMark, bool) {
	last := m.heads[len(m.heads)-1]
	return last.Index + m.ahead, apply.ChainMark{Index: last.Index, Sum: last.Sum + m.otherwise}, index == last.Index
}

// try runs the Prover until it has reported, and returns what the row says then.
func (m *member) try() kv.BackupProof {
	m.t.Helper()
	return m.tryBy(prover.New(m.o))
}

// tryBy is try, by a Prover that may have tried before.
func (m *member) tryBy(p *prover.Prover) kv.BackupProof {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 30*time.Second)
	defer cancel()
	m.ended = cancel
	next := *m.row
	next.Proofs.Member = 3
	m.row = &next
	p.Run(ctx)
	if m.row.Proofs.Member != 0 {
		m.t.Fatal("nothing was reported")
	}
	if _, err := os.Stat(m.o.Dir); !errors.Is(err, os.ErrNotExist) {
		m.t.Errorf("the scratch directory stays: %v", err)
	}
	return m.row.Proofs.Last
}

// Ensure that a proof says what was proven, also in a directory in which a process that was killed left something.
func TestProver_Run(t *testing.T) {
	m := newMember(t)
	if err := os.MkdirAll(filepath.Join(m.o.Dir, "1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.o.Dir, "1", "000001.sst"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	last := m.heads[len(m.heads)-1]
	got := m.try()
	if !got.Proven || got.Member != 3 || got.Point.Index != uint64(last.Index) || got.Point.Revision != last.Revision ||
		got.Bases != 1 || got.Base == ([32]byte{}) || got.Damaged != 0 || got.At == 0 {
		t.Errorf("got %+v", got)
	}
	if again := m.try(); !again.Proven || again.Bases != 0 || again.Base != got.Base {
		t.Errorf("again: %+v", again)
	}
}

// Ensure that damage is a failure, and that what only keeps this member from trying is none.
func TestProver_Run_fails(t *testing.T) {
	m := newMember(t)
	segments := m.catalog().Segments
	name := segments[len(segments)-1].String()
	content, _ := m.place.Bytes(name)
	m.row.Progress.Restorable.Index = uint64(m.heads[len(m.heads)-1].Index) + 1
	if got := m.try(); !got.Failed || !strings.Contains(got.Why, "objects are gone") {
		t.Errorf("the end is gone: %+v", got)
	}
	m.row.Progress.Restorable.Index = 0
	m.otherwise = 1
	if got := m.try(); !got.Failed || got.Proven || !strings.Contains(got.Why, "another history of this cluster: entry 12 has another sum there") {
		t.Errorf("another history: %+v", got)
	}
	m.otherwise = 0
	m.place.Flip(name, len(content)/2)
	for _, base := range m.catalog().Bases[1:] {
		m.place.Remove(base.String())
	}
	if got := m.try(); !got.Failed || got.Damaged == 0 || !strings.Contains(got.Why, "object "+name[:8]) {
		t.Errorf("a segment is damaged: %+v", got)
	}
	m.place.Flip(name, len(content)/2)
	for what, spoil := range map[string]func(){
		"no room":        func() { m.room = errors.New("no room") },
		"large segments": func() { m.o.ObjectBytes = 1 },
		"--identity":     func() { m.row.Policy.Recipients = "age1a" },
		"is away": func() {
			m.o.Open = func(string) (objects.Store, func(), error) { return nil, nil, errors.New("it is away") }
		},
	} {
		options := m.o
		spoil()
		if got := m.try(); got.Failed || got.Proven || got.Why == "" {
			t.Errorf("%s: %+v", what, got)
		}
		m.o, m.room, m.row.Policy.Recipients = options, nil, ""
	}
	if got := m.try(); !got.Proven {
		t.Errorf("healed: %+v", got)
	}
}

// Ensure that a proof ends when its appointment does, and says nothing.
func TestProver_Run_over(t *testing.T) {
	m := newMember(t)
	ctx, cancel := context.WithCancel(t.Context())
	rooms := 0
	m.o.Room = func(int64) error {
		if rooms++; rooms == 4 { // in the middle of it
			next := *m.row
			next.Proofs.Number, next.Proofs.Member = 8, 4
			m.row = &next
		}
		return nil
	}
	row := m.o.Row
	m.o.Row = func() *kv.BackupRow {
		if rooms >= 4 {
			cancel()
		}
		return row()
	}
	m.ended = func() { t.Error("something was reported") }
	prover.New(m.o).Run(ctx)
	if rooms < 4 || m.row.Proofs.Number != 8 {
		t.Errorf("%d looks, %+v", rooms, m.row.Proofs)
	}
}

func (m *member) catalog() *backup.Catalog {
	m.t.Helper()
	c, err := fetch.Catalog(m.t.Context(), m.place, backuptest.Cluster)
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}

// Ensure that a state which this member has not applied yet is waited for, and neither proven nor damage if it does not come; and
// that one which this member knows no sum of is proven.
func TestProver_Run_behind(t *testing.T) {
	m := newMember(t)
	applied, looks := consensus.Index(3), 0
	m.o.Chain = func(index consensus.Index) (consensus.Index, apply.ChainMark, bool) {
		if looks++; looks == 3 {
			applied = 12
		}
		return applied, apply.ChainMark{Index: 8, Sum: 1}, true
	}
	if got := m.try(); !got.Proven || looks < 3 {
		t.Errorf("it comes: %+v, %d looks", got, looks)
	}
	clock := &skips{WallClock: env.WallClock{}}
	m.o.Clock = clock
	m.o.Chain = func(index consensus.Index) (consensus.Index, apply.ChainMark, bool) {
		clock.by += 6 * time.Second
		return 11, apply.ChainMark{Index: 11, Sum: 1}, true
	}
	if got := m.try(); got.Proven || got.Failed || !strings.Contains(got.Why, "this member, which cannot compare it, has applied 11") {
		t.Errorf("it does not come: %+v", got)
	}
}

// skips is a clock that a test moves on.
type skips struct {
	env.WallClock
	by time.Duration
}

func (s *skips) Now() time.Time { return s.WallClock.Now().Add(s.by) }

// Ensure that what a first look does not find, and a second one does, is no damage.
func TestProver_Run_again(t *testing.T) {
	m := newMember(t)
	segments := m.catalog().Segments
	name := segments[len(segments)-1].String()
	content, _ := m.place.Bytes(name)
	for _, base := range m.catalog().Bases[1:] {
		m.place.Remove(base.String())
	}
	m.row.Progress.Restorable.Index = uint64(m.heads[len(m.heads)-1].Index)
	m.place.Remove(name)
	looks := 0
	m.o.Open = func(string) (objects.Store, func(), error) {
		if looks++; looks == 2 {
			if err := m.place.Put(t.Context(), name, bytes.NewReader(content), int64(len(content))); err != nil {
				t.Error(err)
			}
		}
		return m.place, func() {}, nil
	}
	if got := m.try(); !got.Proven || got.Damaged > 0 || looks != 2 {
		t.Errorf("got %+v, after %d looks", got, looks)
	}
}

// Ensure that how a try ended is logged once, however often its report cannot be proposed.
func TestProver_Run_told(t *testing.T) {
	m := newMember(t)
	var logged bytes.Buffer
	m.o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	m.o.LookEvery = time.Millisecond
	reports := 0
	m.o.Propose = func(ctx context.Context, command *kv.Command) (kv.Result, error) {
		if reports++; reports < 4 {
			return kv.Result{}, errors.New("there is no leader")
		}
		return m.apply(ctx, command)
	}
	if got := m.try(); !got.Proven || reports != 4 {
		t.Errorf("got %+v, after %d reports", got, reports)
	}
	if n := strings.Count(logged.String(), "the backup is proven"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, &logged)
	}
}
