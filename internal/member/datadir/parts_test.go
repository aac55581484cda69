package datadir_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// fillData makes data that has applied three entries of term 2.
func fillData(t *testing.T, o datadir.Options, identity wal.Identity) {
	t.Helper()
	first := consensus.Config{
		Voters: []consensus.MemberID{1, 2, 3}, Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3}},
	}
	if err := datadir.Create(o, identity, first); err != nil {
		t.Fatal(err)
	}
	data := datatest.Open(t, o)
	entries := datatest.Puts(1, 3, 2)
	if err := data.WAL.Append(wal.Batch{Hard: &consensus.HardState{Term: 2, Commit: 3}, Entries: entries}); err != nil {
		t.Fatal(err)
	}
	if _, err := data.Machine.Apply(entries); err != nil {
		t.Fatal(err)
	}
	if err := data.Engine.Flush(); err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, data)
}

func clone(t *testing.T, fs env.FS, from, to string) {
	t.Helper()
	info, err := fs.Stat(from)
	if err := errors.Join(err, fs.RemoveAll(to)); err != nil {
		t.Fatal(err)
	}
	if !info.IsDir() {
		file, err := fs.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(file)
		if err := errors.Join(err, file.Close(), durable.WriteFile(fs, to, content)); err != nil {
			t.Fatal(err)
		}
		return
	}
	names, err := fs.List(from)
	if err := errors.Join(err, fs.MkdirAll(to, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		clone(t, fs, fs.PathJoin(from, name), fs.PathJoin(to, name))
	}
}

// refuses checks that the data does not open, and that the error is want and contains words.
func refuses(t *testing.T, o datadir.Options, want error, words ...string) {
	t.Helper()
	data, err := datadir.Open(o)
	if err == nil {
		datatest.Close(t, data)
	}
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not say %q", err, word)
		}
	}
}

// Ensure that Open refuses a directory with a part of another member, in every combination.
func TestOpen_partsOfOthers(t *testing.T) {
	own := wal.Identity{Cluster: 9, Member: 1, Storage: wal.StorageID{1}}
	for name, other := range map[string]struct {
		identity wal.Identity
		word     string
	}{
		"of another cluster":         {wal.Identity{Cluster: 10, Member: 1, Storage: wal.StorageID{1}}, "cluster a"},
		"of another member":          {wal.Identity{Cluster: 9, Member: 2, Storage: wal.StorageID{1}}, "member 2"},
		"of a directory before this": {wal.Identity{Cluster: 9, Member: 1, Storage: wal.StorageID{2}}, "storage 02"},
		"of another recovery": {wal.Identity{Cluster: 9, Member: 1, Storage: wal.StorageID{1},
			Epoch: consensus.Epoch{Number: 1, Recovery: [16]byte{7}}}, "epoch 1-07000000"},
	} {
		for _, part := range []string{"wal", "stores", "boots"} {
			t.Run(part+" "+name, func(t *testing.T) {
				fs := filestest.NewMem()
				a, b := datatest.OptionsIn(fs, "a"), datatest.OptionsIn(fs, "b")
				mine := own
				if other.identity.Epoch.Number > 0 {
					mine.Epoch = consensus.Epoch{Number: 1, Recovery: [16]byte{8}}
				}
				fillData(t, a, mine)
				fillData(t, b, other.identity)
				clone(t, fs, "b/"+part, "a/"+part)
				refuses(t, a, datadir.ErrMixed, other.word, "a/"+part)
				if _, err := datadir.Inspect(a); !errors.Is(err, datadir.ErrMixed) {
					t.Errorf("Inspect: got %v", err)
				}
			})
		}
	}
}

// Ensure that a part from an earlier life of the same directory is detected, and that the newest parts open after all.
func TestOpen_rolledBack(t *testing.T) {
	for _, row := range []struct{ part, word string }{
		{"wal", "the log in a/wal was opened 1 time"},
		{"boots", "a/boots counts 1 start"},
	} {
		t.Run(row.part, func(t *testing.T) {
			fs := filestest.NewMem()
			o := datatest.OptionsIn(fs, "a")
			fillData(t, o, wal.Identity{Cluster: 9, Member: 1, Storage: wal.StorageID{1}})
			clone(t, fs, "a/"+row.part, "old")
			for range 2 {
				datatest.Close(t, datatest.Open(t, o))
			}
			clone(t, fs, "a/"+row.part, "new")
			clone(t, fs, "old", "a/"+row.part)
			refuses(t, o, datadir.ErrRolledBack, row.word)
			clone(t, fs, "new", "a/"+row.part)
			data := datatest.Open(t, o)
			if data.Boots != 4 {
				t.Errorf("boots is %d, want 4: a refused start counts for nothing", data.Boots)
			}
			datatest.Close(t, data)
		})
	}
}

// Ensure that the other parts take over the epoch that a recovery wrote to the log, and that a log from before the recovery is
// refused from then on.
func TestOpen_epochOfTheLog(t *testing.T) {
	fs := filestest.NewMem()
	o := datatest.OptionsIn(fs, "a")
	fillData(t, o, wal.Identity{Cluster: 9, Member: 1, Storage: wal.StorageID{1}})
	clone(t, fs, "a", "before")
	data := datatest.Open(t, o)
	epoch := consensus.Epoch{Number: 1, Recovery: [16]byte{5}}
	if err := data.WAL.Append(wal.Batch{Epoch: &epoch}); err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, data)
	for range 2 {
		data = datatest.Open(t, o)
		if data.Identity.Epoch != epoch || data.Machine.Owner() != data.Identity {
			t.Errorf("epoch %v, owner of the store %+v", data.Identity.Epoch, data.Machine.Owner())
		}
		datatest.Close(t, data)
	}
	clone(t, fs, "before/wal", "a/wal")
	refuses(t, o, datadir.ErrRolledBack, "epoch 1-05000000")
}

func TestOpen_damagedBoots(t *testing.T) {
	fs := filestest.NewMem()
	o := datatest.OptionsIn(fs, "a")
	fillData(t, o, wal.Identity{Cluster: 9, Member: 1, Storage: wal.StorageID{1}})
	text, err := durable.ReadSealed(fs, "a/boots")
	if err != nil || !strings.Contains(text, "\nboots 1\n") {
		t.Fatalf("%q %v", text, err)
	}
	for _, spoilt := range []string{"1\n", text, strings.Replace(text, "boots 1", "boots 2", 1)} {
		if err := durable.WriteFile(fs, "a/boots", []byte(spoilt)); err != nil {
			t.Fatal(err)
		}
		refuses(t, o, durable.ErrCorrupt, "a/boots", "is damaged")
	}
	for _, odd := range []string{"", "boots 1\n", text + "more\n", strings.Replace(text, "storage 01", "storage ", 1)} {
		if err := durable.WriteSealed(fs, "a/boots", odd); err != nil {
			t.Fatal(err)
		}
		if data, err := datadir.Open(o); err == nil {
			datatest.Close(t, data)
			t.Errorf("opened with %q", odd)
		}
	}
}

// A member that sends anything has its life on disk, in the log and in the boots file. A power loss between the two writes does
// not look like a log that was put back.
func TestOpen_powerLossAtStart(t *testing.T) {
	fs := filestest.NewCrashableMem()
	o := datatest.OptionsIn(fs, "/data/member")
	fillData(t, o, wal.Identity{Cluster: 9, Member: 1, Storage: wal.StorageID{1}})
	data := datatest.Open(t, o)
	if err := data.WAL.Append(wal.Batch{Boots: data.Boots + 1}); err != nil { // the next start stopped here
		t.Fatal(err)
	}
	again := datatest.Open(t, datatest.OptionsIn(fs.CrashClone(filestest.CrashCloneCfg{}), "/data/member"))
	if again.Boots != data.Boots+1 {
		t.Errorf("boots is %d, want %d", again.Boots, data.Boots+1)
	}
	if again.Life() == data.Life() || again.Nonce == data.Nonce {
		t.Errorf("two lives are called %v", again.Life())
	}
	datatest.Close(t, again)
	datatest.Close(t, data)
}

// Directories above a member's may have been made by a program that did not sync them.
func TestCreate_directoriesAreDurable(t *testing.T) {
	for _, made := range []string{"", "/var/quorate", "/mnt/log"} {
		t.Run(fmt.Sprintf("made %q", made), func(t *testing.T) {
			fs := filestest.NewCrashableMem()
			if made != "" {
				if err := fs.MkdirAll(made, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			o := datatest.OptionsIn(fs, "/var/quorate/member")
			o.WALDir = "/mnt/log/q"
			fillData(t, o, wal.Identity{Cluster: 9, Member: 1, Storage: wal.StorageID{1}})
			left := datatest.OptionsIn(fs.CrashClone(filestest.CrashCloneCfg{}), "/var/quorate/member")
			left.WALDir = o.WALDir
			if exists, err := datadir.Exists(left); err != nil || !exists {
				t.Fatalf("after a power loss: exists %v, %v", exists, err)
			}
			datatest.Close(t, datatest.Open(t, left))
		})
	}
}

// A snapshot that differs from its announcement is refused while the old store serves, and the old store goes on.
func TestData_Replace_refused(t *testing.T) {
	leader := datatest.Create(t, datatest.Options(), 2)
	defer datatest.Close(t, leader)
	if _, err := leader.Machine.Apply(datatest.Puts(1, 50, 2)); err != nil {
		t.Fatal(err)
	}
	foreign := datatest.Options()
	fillData(t, foreign, wal.Identity{Cluster: 10, Member: 2, Storage: wal.StorageID{2}})
	other := datatest.Open(t, foreign)
	defer datatest.Close(t, other)
	for name, row := range map[string]struct {
		from *datadir.Data
		skew consensus.Index
		word string
	}{
		"another mark":    {leader, 1, "announced was 51.2"},
		"another cluster": {other, 0, "cluster a"},
	} {
		t.Run(name, func(t *testing.T) {
			options := datatest.Options()
			data := datatest.Create(t, options, 1)
			if _, err := data.Machine.Apply(datatest.Puts(1, 4, 1)); err != nil {
				t.Fatal(err)
			}
			meta := row.from.Machine.SnapshotMeta()
			meta.Position.Index += row.skew
			err := data.Replace(meta, datatest.Receive(t, options, row.from))
			if err == nil || !strings.Contains(err.Error(), row.word) {
				t.Errorf("got %v, want %q", err, row.word)
			}
			if _, err := data.Machine.Apply(datatest.Puts(5, 1, 1)); err != nil || data.Machine.Applied().Index != 5 {
				t.Errorf("the old store does not go on: %v", err)
			}
			datatest.Close(t, data)
		})
	}
}
