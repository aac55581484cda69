package datadir_test

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// removing is a file system whose RemoveAll removes one file after another and stops early, as if the process were killed.
type removing struct {
	env.FS
	left int // files that may still be removed
}

var errKilled = errors.New("killed")

func (r *removing) RemoveAll(name string) error {
	stat, err := r.Stat(name)
	if err != nil {
		return nil //nolint:nilerr // as os.RemoveAll
	}
	if stat.IsDir() {
		names, err := r.List(name)
		if err != nil {
			return err
		}
		for _, child := range names {
			if err := r.RemoveAll(r.PathJoin(name, child)); err != nil {
				return err
			}
		}
	}
	if r.left == 0 {
		return errKilled
	}
	r.left--
	return r.Remove(name)
}

// A start that is killed while it removes the half-made parts of an earlier start must not look like damage to the next start.
func TestCreate_killedWhileDiscarding(t *testing.T) {
	first := consensus.Config{Voters: []consensus.MemberID{1}, Members: []consensus.Member{{ID: 1}}}
	identity := wal.Identity{Cluster: 9, Member: 1, Storage: wal.StorageID{1}}
	killed := 0
	for files := 0; ; files++ {
		fs := &removing{FS: filestest.NewMem(), left: 1 << 20}
		options := datatest.Options()
		options.FS = fs
		options.OpenEngine = func(dir string) (engine.Engine, error) {
			return engine.Open(engine.Options{FS: fs, Dir: dir})
		}
		if err := datadir.Create(options, identity, first); err != nil {
			t.Fatal(err)
		}
		if err := fs.Remove("data/boots"); err != nil { // the last file of a creation
			t.Fatal(err)
		}
		fs.left = files
		err := datadir.Create(options, identity, first)
		if err == nil {
			break
		}
		killed++
		if !errors.Is(err, errKilled) {
			t.Fatalf("%d files removed: %v", files, err)
		}
		fs.left = 1 << 20
		if err := datadir.Create(options, identity, first); err != nil {
			t.Fatalf("a start after one that was killed with %d files removed: %v", files, err)
		}
		data, err := datadir.Open(options)
		if err != nil {
			t.Fatalf("%d files removed: %v", files, err)
		}
		if err := data.Close(); err != nil {
			t.Fatal(err)
		}
		if left, err := fs.List("data"); err != nil || len(left) != 3 {
			t.Errorf("%d files removed: %v, %v", files, left, err)
		}
	}
	if killed < 5 {
		t.Errorf("it was killed %d times", killed)
	}
}
