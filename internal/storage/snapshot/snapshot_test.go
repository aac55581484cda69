package snapshot_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

const dataDir = "/data"

func path(fs env.FS, elements ...string) string {
	return fs.PathJoin(append([]string{dataDir}, elements...)...)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newDisk has an empty, durable data directory.
func newDisk(t *testing.T) *filestest.MemFS {
	t.Helper()
	fs := filestest.NewCrashableMem()
	check(t, fs.MkdirAll(dataDir, 0o755))
	sync(t, fs, "/")
	return fs
}

func sync(t *testing.T, fs env.FS, dir string) {
	t.Helper()
	d, err := fs.OpenDir(dir)
	check(t, err)
	check(t, errors.Join(d.Sync(), d.Close()))
}

type opener struct {
	name string
	open func(fs env.FS, dir string) (engine.Engine, error)
}

var openers = []opener{
	{"pebble", func(fs env.FS, dir string) (engine.Engine, error) {
		return engine.Open(engine.Options{FS: fs, Dir: dir})
	}},
	{"memory", func(fs env.FS, dir string) (engine.Engine, error) {
		return engine.OpenMem(engine.MemOptions{FS: fs, Dir: dir})
	}},
}

// fill writes keys whose values name their origin.
func fill(t *testing.T, e engine.Engine, origin string, keys int) {
	t.Helper()
	b := e.NewBatch()
	for i := range keys {
		b.Set(fmt.Appendf(nil, "key-%06d", i), fmt.Appendf(nil, "%s-%d", origin, i))
	}
	check(t, errors.Join(b.Commit(), b.Close(), e.Flush()))
}

func wantKeys(t *testing.T, e engine.Engine, origin string, keys int) {
	t.Helper()
	for i := range keys {
		got, found, err := e.Get(fmt.Appendf(nil, "key-%06d", i))
		check(t, err)
		if want := fmt.Sprintf("%s-%d", origin, i); !found || string(got) != want {
			t.Fatalf("key %d: got %q, want %q", i, got, want)
		}
	}
}

func TestSnapshot_fromStoreToStore(t *testing.T) {
	for _, o := range openers {
		t.Run(o.name, func(t *testing.T) {
			const keys = 20_000
			leader, follower := newDisk(t), newDisk(t)
			e, err := o.open(leader, snapshot.StorePath(leader, dataDir, 1))
			check(t, err)
			fill(t, e, "new", keys)
			built := path(leader, snapshot.WorkDir, "outgoing-1")
			check(t, snapshot.Build(e.Checkpoint, leader, built))
			// Rows that are written after Build are not part of the snapshot.
			fill(t, e, "late", keys)

			view := path(leader, snapshot.WorkDir, "view")
			check(t, snapshot.Clone(leader, built, view))
			viewed, err := o.open(leader, view)
			check(t, err)
			wantKeys(t, viewed, "new", keys)
			fill(t, viewed, "scribble", 10)
			check(t, viewed.Close())
			if _, err := snapshot.Verify(leader, built); err != nil {
				t.Fatalf("opening a clone touched the snapshot: %v", err)
			}

			var stream bytes.Buffer
			check(t, snapshot.Write(&stream, leader, built))
			check(t, e.Close())

			old, err := o.open(follower, snapshot.StorePath(follower, dataDir, 1))
			check(t, err)
			fill(t, old, "old", 2*keys)
			check(t, old.Close())
			incoming := path(follower, snapshot.WorkDir, "incoming-1")
			check(t, snapshot.Receive(follower, &stream, incoming))
			check(t, snapshot.Stage(follower, dataDir, incoming, 2))
			check(t, snapshot.Switch(follower, dataDir, snapshot.Current{Generation: 2, Installed: position}))
			_, err = snapshot.Recover(follower, dataDir)
			check(t, err)
			got, err := o.open(follower, snapshot.StorePath(follower, dataDir, 2))
			check(t, err)
			wantKeys(t, got, "new", keys)
			if _, found, _ := got.Get(fmt.Appendf(nil, "key-%06d", keys)); found {
				t.Error("a key of the old store is still there")
			}
			check(t, got.Close())
			wantNames(t, follower, path(follower, snapshot.StoresDir), "2", "CURRENT")
		})
	}
}

// copyingEngine stands in for a store whose checkpoint is given.
type copyingEngine struct {
	engine.Engine
	fs    env.FS
	files map[string]string
}

func (c copyingEngine) Checkpoint(dir string) error {
	if err := c.fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range sortedNames(c.files) {
		if err := put(c.fs, c.fs.PathJoin(dir, name), c.files[name]); err != nil {
			return err
		}
	}
	return nil
}

func sortedNames(files map[string]string) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func put(fs env.FS, path, content string) error {
	f, err := fs.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(content))
	return errors.Join(err, f.Sync(), f.Close())
}

var newFiles = map[string]string{
	"000001.sst": "new table", "000002.sst": "", "MANIFEST-1": string(bytes.Repeat([]byte("new"), 50)),
}

// newStream is a small stream.
func newStream(t testing.TB) []byte {
	t.Helper()
	fs := filestest.NewMem()
	var stream bytes.Buffer
	err := snapshot.Build(copyingEngine{fs: fs, files: newFiles}.Checkpoint, fs, "/work/1")
	if err = errors.Join(err, snapshot.Write(&stream, fs, "/work/1")); err != nil {
		t.Fatal(err)
	}
	return stream.Bytes()
}

func wantNames(t *testing.T, fs env.FS, dir string, want ...string) {
	t.Helper()
	got, err := fs.List(dir)
	check(t, err)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("%s holds %q, want %q", dir, got, want)
	}
}

func TestReceive_damagedStream(t *testing.T) {
	whole := newStream(t)
	try := func(name string, stream []byte, want error) {
		t.Helper()
		fs := newDisk(t)
		err := snapshot.Receive(fs, bytes.NewReader(stream), path(fs, snapshot.WorkDir, "in"))
		if !errors.Is(err, want) {
			t.Fatalf("%s: got %v, want %v", name, err, want)
		}
		wantNames(t, fs, path(fs, snapshot.WorkDir))
	}
	for i := range whole {
		try(fmt.Sprintf("cut after %d bytes", i), whole[:i], snapshot.ErrCorrupt)
		flipped := slices.Clone(whole)
		flipped[i] ^= 0x10
		want := snapshot.ErrCorrupt
		switch {
		case i < 8:
			want = snapshot.ErrForeign
		case i < 12:
			want = snapshot.ErrNewer
		}
		try(fmt.Sprintf("byte %d flipped", i), flipped, want)
	}
	try("a byte too many", append(slices.Clone(whole), 0), snapshot.ErrCorrupt)
	try("two streams", append(slices.Clone(whole), whole...), snapshot.ErrCorrupt)
	try("another format", []byte("SQLite format 3\x00 and then some"), snapshot.ErrForeign)
	for _, name := range []string{"../store/evil", "/etc/evil", "..", ".", "", "SNAPSHOT", "a\\b", "a\x00b"} {
		try(fmt.Sprintf("file name %q", name), forged(name), snapshot.ErrCorrupt)
	}
	try("the same name twice", forged("a", "a"), snapshot.ErrCorrupt)
	try("a manifest of 4 GiB", append([]byte("QRTSNAP\n\x01\x00\x00\x00"), 0xff, 0xff, 0xff, 0xff), snapshot.ErrCorrupt)
}

// forged is a stream of empty files, valid but for their names.
func forged(names ...string) []byte {
	var files []byte
	for _, name := range names {
		files = binary.AppendUvarint(files, uint64(len(name)))
		files = append(append(files, name...), 0, 0, 0, 0, 0)
	}
	out := append([]byte("QRTSNAP\n"), 1, 0, 0, 0)
	out = append(binary.LittleEndian.AppendUint32(out, uint32(len(files))), files...)
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, crc32.MakeTable(crc32.Castagnoli)))
	return append(out, "QRTSNEND"...)
}

func TestReceive_brokenConnection(t *testing.T) {
	broken := errors.New("connection reset")
	whole := newStream(t)
	for i := range whole {
		fs := newDisk(t)
		r := io.MultiReader(bytes.NewReader(whole[:i]), errorReader{broken})
		if err := snapshot.Receive(fs, r, path(fs, snapshot.WorkDir, "in")); !errors.Is(err, broken) {
			t.Fatalf("after %d bytes: got %v, want %v", i, err, broken)
		}
		wantNames(t, fs, path(fs, snapshot.WorkDir))
	}
	// Even the last word belongs to the reader: the transport may know better than the end mark.
	fs := newDisk(t)
	r := io.MultiReader(bytes.NewReader(whole), errorReader{broken})
	if err := snapshot.Receive(fs, r, path(fs, snapshot.WorkDir, "in")); !errors.Is(err, broken) {
		t.Fatalf("got %v, want %v", err, broken)
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func TestReceive_fullDisk(t *testing.T) {
	full := errors.New("no space left on device")
	whole := newStream(t)
	for after := 0; ; after++ {
		disk, allowed := newDisk(t), after
		// From the operation on, nothing that needs space works; removing still does.
		fs := filestest.Wrap(disk, filestest.InjectorFunc(func(op filestest.Op) error {
			switch op.Kind {
			case filestest.OpCreate, filestest.OpMkdirAll, filestest.OpFileWrite, filestest.OpFileSync, filestest.OpRename:
				if allowed--; allowed < 0 {
					return full
				}
			}
			return nil
		}))
		err := snapshot.Receive(fs, bytes.NewReader(whole), path(fs, snapshot.WorkDir, "in"))
		if err == nil {
			if after < 10 {
				t.Fatalf("only %d operations were tried", after)
			}
			return
		}
		if !errors.Is(err, full) {
			t.Fatalf("got %v, want %v", err, full)
		}
		if names, err := disk.List(path(fs, snapshot.WorkDir)); err == nil && len(names) > 0 {
			t.Fatalf("full after %d operations: %q left", after, names)
		}
	}
}

func TestReceive_knowsTheRoomBefore(t *testing.T) {
	fs := newDisk(t)
	fs.SetDiskUsage(env.DiskUsage{AvailBytes: 10})
	err := snapshot.Receive(fs, bytes.NewReader(newStream(t)), path(fs, snapshot.WorkDir, "in"))
	if !errors.Is(err, snapshot.ErrNoSpace) {
		t.Fatalf("got %v, want %v", err, snapshot.ErrNoSpace)
	}
	wantNames(t, fs, path(fs, snapshot.WorkDir))
}

// Ensure that a snapshot that fits the disk, but not beside its reserve, is refused before anything is written.
func TestReceiveBeside_reserve(t *testing.T) {
	fs := newDisk(t)
	stream := newStream(t)
	for _, c := range []struct {
		available uint64
		reserve   int64
		room      bool
	}{{1 << 20, 0, true}, {1 << 20, 1 << 19, true}, {1 << 20, 1<<20 - 10, false}, {1 << 20, 1 << 21, false}} {
		fs.SetDiskUsage(env.DiskUsage{AvailBytes: c.available})
		err := snapshot.ReceiveBeside(fs, bytes.NewReader(stream), path(fs, snapshot.WorkDir, "in"), c.reserve)
		if c.room != (err == nil) || err != nil && !errors.Is(err, snapshot.ErrNoSpace) {
			t.Errorf("%d bytes are free, %d in reserve: got %v", c.available, c.reserve, err)
		}
	}
}

func TestWrite_changedFile(t *testing.T) {
	for _, row := range []struct{ name, content string }{
		{"a byte changed", "neW table"}, {"it became shorter", "new"},
	} {
		fs := newDisk(t)
		dir := path(fs, snapshot.WorkDir, "out")
		check(t, snapshot.Build(copyingEngine{fs: fs, files: newFiles}.Checkpoint, fs, dir))
		check(t, put(fs, fs.PathJoin(dir, "000001.sst"), row.content))
		var stream bytes.Buffer
		if err := snapshot.Write(&stream, fs, dir); !errors.Is(err, snapshot.ErrCorrupt) {
			t.Errorf("%s: got %v, want %v", row.name, err, snapshot.ErrCorrupt)
		}
		if _, err := snapshot.Verify(fs, dir); !errors.Is(err, snapshot.ErrCorrupt) {
			t.Errorf("%s: Verify got %v, want %v", row.name, err, snapshot.ErrCorrupt)
		}
		other := newDisk(t)
		err := snapshot.Receive(other, &stream, path(other, snapshot.WorkDir, "in"))
		if !errors.Is(err, snapshot.ErrCorrupt) {
			t.Errorf("%s: the receiver got %v, want %v", row.name, err, snapshot.ErrCorrupt)
		}
	}
}

func TestBuild_failureLeavesNothing(t *testing.T) {
	broken := errors.New("input/output error")
	for at := 0; ; at++ {
		disk, left := newDisk(t), at
		fs := filestest.Wrap(disk, filestest.InjectorFunc(func(op filestest.Op) error {
			if op.Kind == filestest.OpRemoveAll {
				return nil
			}
			if left--; left == -1 {
				return broken
			}
			return nil
		}))
		err := snapshot.Build(copyingEngine{fs: fs, files: newFiles}.Checkpoint, fs, path(fs, snapshot.WorkDir, "out"))
		if left >= 0 {
			check(t, err)
			return
		}
		if err == nil {
			// An operation whose failure does no harm.
			continue
		}
		if names, _ := disk.List(path(fs, snapshot.WorkDir)); len(names) > 0 {
			t.Fatalf("failure of operation %d left %q", at, names)
		}
	}
}

func FuzzReceive(f *testing.F) {
	f.Add(newStream(f))
	f.Add(forged("a", "b"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		fs := filestest.NewMem()
		if err := fs.MkdirAll(dataDir, 0o755); err != nil {
			t.Fatal(err)
		}
		dir := path(fs, snapshot.WorkDir, "in")
		err := snapshot.Receive(fs, bytes.NewReader(stream), dir)
		names, _ := fs.List(path(fs, snapshot.WorkDir))
		if err != nil && len(names) > 0 {
			t.Fatalf("refused, but left %q", names)
		}
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := snapshot.Write(&again, fs, dir); err != nil || !bytes.Equal(again.Bytes(), stream) {
			t.Fatalf("accepted, but not reproduced: %v", err)
		}
	})
}
