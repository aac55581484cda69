package backuptest

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/perform"
	"github.com/quorate/quorate/internal/backup/replay"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Spoil replaces a base by one of the same state whose store has other values, as a member with faulty memory would make it,
// and returns its name. open opens stores as they were opened when the base was made.
func Spoil(
	t testing.TB, store objects.Store, c *backup.Catalog, base *backup.Base, open func(dir string) (engine.Engine, error),
) string {
	t.Helper()
	var eng engine.Engine
	s, err := replay.Run(t.Context(), replay.Options{Store: store, FS: files.Disk, Dir: filepath.Join(t.TempDir(), "scratch"),
		OpenEngine: func(dir string) (_ engine.Engine, err error) {
			eng, err = open(dir)
			return eng, err
		}}, &backup.Catalog{Cluster: c.Cluster, Bases: []backup.Base{*base}}, backup.Target{Index: base.Index})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	change(t, eng)
	p := perform.Performer{Store: store, FS: files.Disk, Dir: filepath.Join(t.TempDir(), "checkpoint"),
		Checkpoint: func(_ context.Context, dir string, f func(*apply.Machine) error) error {
			return errors.Join(eng.Checkpoint(dir), f(s.Machine))
		}}
	o := p.Do(t.Context(), &ship.Op{Kind: ship.Checkpoint})
	if o.Result != ship.OK {
		t.Fatal(o.Why)
	}
	for _, f := range o.Made.Files {
		op := ship.Op{Kind: ship.PutFile, Name: backup.FileName(c.Cluster, f.Hash), File: f}
		if o := p.Do(t.Context(), &op); o.Result != ship.OK {
			t.Fatal(o.Why)
		}
	}
	o.Made.Cluster, o.Made.Epoch, o.Made.Time = backup.Hex(c.Cluster), base.Epoch, base.Time
	name, content := o.Made.Encode()
	if err := errors.Join(store.Delete(t.Context(), base.String()),
		store.Put(t.Context(), name.String(), bytes.NewReader(content), int64(len(content)))); err != nil {
		t.Fatal(err)
	}
	return name.String()
}

// change changes the last byte of all values.
func change(t testing.TB, eng engine.Engine) {
	t.Helper()
	batch := eng.NewBatch()
	it, err := eng.NewIter([]byte("d"), []byte("e"))
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if value := bytes.Clone(it.Value()); len(value) > 12 {
			value[len(value)-1]++
			batch.Set(bytes.Clone(it.Key()), value)
		}
	}
	if err := errors.Join(it.Close(), batch.Commit(), batch.Close()); err != nil {
		t.Fatal(err)
	}
}
