package prover_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/backuptest"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/server/prover"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Ensure that a disk that is full while the store of a proof writes its manifest ends that proof, not the member, which then tries
// none before its restart.
func TestProver_Run_storeCannotGoOn(t *testing.T) {
	m := newMember(t)
	m.o.OpenEngine = func(dir string, fatal func(error)) (engine.Engine, error) {
		var full atomic.Bool
		fs := filestest.Wrap(files.Disk, filestest.InjectorFunc(func(op filestest.Op) error {
			if full.Load() && op.Kind.ReadOrWrite() == filestest.OpIsWrite && strings.Contains(op.Path, "MANIFEST") {
				return syscall.ENOSPC
			}
			return nil
		}))
		e, err := engine.Open(engine.Options{FS: fs, Dir: dir, OnFatal: fatal})
		if err != nil {
			return nil, err
		}
		full.Store(true)
		b := e.NewBatch()
		b.Set([]byte("\x01key"), []byte("value"))
		if err := b.Commit(); err != nil {
			return nil, err
		}
		return e, e.Flush()
	}
	p := prover.New(m.o)
	if got := m.tryBy(p); got.Failed || got.Proven || !strings.Contains(got.Why, "no space left") {
		t.Errorf("got %+v", got)
	}
	if got := m.tryBy(p); got.Failed || got.Proven || !strings.Contains(got.Why, "restart this member") {
		t.Errorf("again: %+v", got)
	}
}

// Ensure that bases that no member reported prove nothing.
func TestProver_Run_unknown(t *testing.T) {
	m := newMember(t)
	m.row.Known = nil
	if got := m.try(); !got.Failed || !strings.Contains(got.Why, "of no member of this cluster") {
		t.Errorf("got %+v", got)
	}
}

// endless is a place whose lists never end.
type endless struct {
	objects.Store
	listed func()
}

func (e endless) List(ctx context.Context, prefix, after string, _ int) ([]objects.Info, bool, error) {
	e.listed()
	found, _, err := e.Store.List(ctx, prefix, "", 1)
	return found, true, err
}

// Ensure that a member that does not prove any more ends between two pages of a list.
func TestProver_Run_overInList(t *testing.T) {
	m := newMember(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pages := 0
	m.o.Open = func(string) (objects.Store, func(), error) {
		return endless{m.place, func() {
			if pages++; pages == 3 {
				next := *m.row
				next.Proofs.Number, next.Proofs.Member = 8, 4
				m.row = &next
			}
		}}, cancel, nil
	}
	m.o.Propose = func(context.Context, *kv.Command) (kv.Result, error) {
		t.Error("something was reported")
		return kv.Result{}, nil
	}
	prover.New(m.o).Run(ctx)
	if pages != 3 {
		t.Errorf("%d pages", pages)
	}
}

// Ensure that a member that has no memory for a proof says so, and opens nothing; and that a place with more names than there is
// memory for is not called damaged.
func TestProver_Run_tooLittleMemory(t *testing.T) {
	m := newMember(t)
	place := m.o.Open
	m.o.TooLittle = errors.New("give it --memory=800MiB")
	m.o.Open = func(string) (objects.Store, func(), error) {
		t.Error("the place was opened")
		return nil, nil, errors.New("no place")
	}
	if got := m.try(); got.Failed || got.Proven || got.Why != "give it --memory=800MiB" {
		t.Errorf("got %+v", got)
	}
	m.o.TooLittle, m.o.NameBytes = nil, 512*5000
	m.o.Open = func(url string) (objects.Store, func(), error) {
		store, done, err := place(url)
		return withLog(store, m.heads[len(m.heads)-1].Index+2), done, err
	}
	if got := m.try(); got.Failed || got.Proven || !strings.Contains(got.Why, "listed 5000, for more raise its --memory") {
		t.Errorf("got %+v", got)
	}
}

// crowded is a place that has many more objects of one entry of the log.
type crowded struct {
	objects.Store
	names []string // sorted
}

func withLog(store objects.Store, entry consensus.Index) crowded {
	c := crowded{Store: store}
	for i := range 2 * fetch.LeastSegments {
		s := backup.SegmentName{Cluster: backuptest.Cluster, First: entry, End: backup.Point{Index: entry, Sum: uint64(i)}}
		c.names = append(c.names, s.String())
	}
	slices.Sort(c.names)
	return c
}

func (c crowded) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	if !strings.HasPrefix(prefix, backup.LogPrefix) {
		return c.Store.List(ctx, prefix, after, limit)
	}
	first, _ := slices.BinarySearch(c.names, after+"\x00")
	last := min(first+limit, len(c.names))
	var found []objects.Info
	for _, name := range c.names[first:last] {
		found = append(found, objects.Info{Name: name})
	}
	return found, last < len(c.names), nil
}
