package disk

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/quorate/quorate/internal/base/env"
)

var (
	// ErrDead is the error of a disk after its member was killed in the middle of an operation.
	ErrDead = errors.New("disk: the machine lost power")

	errNoSpace = &os.PathError{Op: "write", Path: "virtual disk", Err: syscall.ENOSPC}
	errIO      = &os.PathError{Op: "write", Path: "virtual disk", Err: syscall.EIO}
)

// inode is a file or a directory. A file holds its bytes as readers see them, the bytes as they are on the platter, and
// the writes in between; a directory holds both of its name tables.
type inode struct {
	data    []byte
	durable []byte
	pending []write
	names   map[string]*inode // nil for files
	kept    map[string]*inode
}

type write struct {
	at   int
	data []byte
}

// rename is a pending change of one or two name tables, atomic at a crash. A nil inode removes the name.
type rename struct{ edits []edit }

type edit struct {
	dir  *inode
	name string
	node *inode
}

// Stats counts the operations of a disk.
type Stats struct {
	Writes, Syncs, Bytes uint64
	Crashes              uint64
	LostSectors          uint64
}

// FS is one member's disk.
type FS struct {
	root  *inode
	meta  []rename
	stats Stats
	dead  bool
	fuse  int // operations until death; negative = never

	// Full makes every write fail for lack of space, Broken with an I/O error; Lying makes Sync a no-op that reports success.
	Full, Broken, Lying bool
}

// New returns an empty disk.
func New() *FS {
	return &FS{root: newDir(), fuse: -1}
}

func newDir() *inode {
	return &inode{names: map[string]*inode{}, kept: map[string]*inode{}}
}

// Stats returns the counters.
func (f *FS) Stats() Stats { return f.stats }

// DieAfter allows n more changing operations; then the disk does nothing more and returns ErrDead.
func (f *FS) DieAfter(n int) { f.fuse = n }

// Dead reports whether the power failed.
func (f *FS) Dead() bool { return f.dead }

func (n *inode) sync() {
	for _, w := range n.pending {
		n.durable = overwrite(n.durable, w.at, w.data)
	}
	n.pending = nil
}

func overwrite(dst []byte, at int, src []byte) []byte {
	if need := at + len(src); need > len(dst) {
		if need > cap(dst) {
			dst = slices.Grow(dst, max(need-len(dst), len(dst)))
		}
		old := len(dst)
		dst = dst[:need]
		clear(dst[old:])
	}
	copy(dst[at:], src)
	return dst
}

func (r rename) keep() {
	for _, e := range r.edits {
		if e.node == nil {
			delete(e.dir.kept, e.name)
		} else {
			e.dir.kept[e.name] = e.node
		}
	}
}

// Mode says what a crash does to bytes and names that were not synced.
type Mode uint8

const (
	// LoseAll keeps nothing that was not synced.
	LoseAll Mode = iota
	// KeepAll keeps everything, as if only the process had died.
	KeepAll
	// Torn decides sector by sector.
	Torn
)

const sectorBytes = 512

// Crash returns the disk in its state after a power loss. The old disk must not be used any more.
func (f *FS) Crash(mode Mode, rng *rand.Rand) *FS {
	next := &FS{root: f.root, fuse: -1, stats: f.stats, Full: f.Full, Broken: f.Broken, Lying: f.Lying}
	next.stats.Crashes++
	keep := 0
	switch mode {
	case KeepAll:
		keep = len(f.meta)
	case Torn:
		keep = rng.IntN(len(f.meta) + 1)
	}
	for _, m := range f.meta[:keep] {
		m.keep()
	}
	f.meta = nil
	f.dead = true
	next.root.crash(mode, rng, &next.stats)
	return next
}

// crash walks in name order, so that the draws for each file are the same each time.
func (n *inode) crash(mode Mode, rng *rand.Rand, stats *Stats) {
	if n.names == nil {
		n.crashFile(mode, rng, stats)
		return
	}
	n.names = make(map[string]*inode, len(n.kept))
	for _, name := range sortedNames(n.kept) {
		child := n.kept[name]
		n.names[name] = child
		child.crash(mode, rng, stats)
	}
}

func (n *inode) crashFile(mode Mode, rng *rand.Rand, stats *Stats) {
	if len(n.pending) == 0 {
		n.data = slices.Clone(n.durable)
		return
	}
	percent := 0
	switch mode {
	case KeepAll:
		percent = 100
	case Torn:
		percent = []int{0, 10, 50, 90, 100}[rng.IntN(5)]
	}
	for _, w := range n.pending {
		for at := 0; at < len(w.data); {
			// Sectors are aligned in the file, not in the write.
			end := min(len(w.data), (w.at+at)/sectorBytes*sectorBytes+sectorBytes-w.at)
			if percent == 100 || (percent > 0 && rng.IntN(100) < percent) {
				n.durable = overwrite(n.durable, w.at+at, w.data[at:end])
			} else {
				stats.LostSectors++
			}
			at = end
		}
	}
	n.pending = nil
	n.data = slices.Clone(n.durable)
}

func sortedNames(names map[string]*inode) []string {
	list := make([]string, 0, len(names))
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// change is called before every operation that changes the disk.
func (f *FS) change() error {
	if f.dead {
		return ErrDead
	}
	if f.fuse == 0 {
		f.dead = true
		return ErrDead
	}
	if f.fuse > 0 {
		f.fuse--
	}
	if f.Broken {
		return errIO
	}
	return nil
}

func notExist(op, name string) error {
	return &os.PathError{Op: op, Path: name, Err: os.ErrNotExist}
}

// find returns the directory that holds name, and the last part of name.
func (f *FS) find(op, name string) (dir *inode, base string, err error) {
	clean := strings.Trim(path.Clean("/"+name), "/")
	dir = f.root
	for {
		part, rest, more := strings.Cut(clean, "/")
		if !more {
			return dir, part, nil
		}
		child := dir.names[part]
		if child == nil || child.names == nil {
			return nil, "", notExist(op, name)
		}
		dir, clean = child, rest
	}
}

func (f *FS) lookup(op, name string) (*inode, error) {
	dir, base, err := f.find(op, name)
	if err != nil {
		return nil, err
	}
	if base == "" {
		return f.root, nil
	}
	if n := dir.names[base]; n != nil {
		return n, nil
	}
	return nil, notExist(op, name)
}

func (f *FS) edit(edits ...edit) {
	for _, e := range edits {
		if e.node == nil {
			delete(e.dir.names, e.name)
		} else {
			e.dir.names[e.name] = e.node
		}
	}
	f.meta = append(f.meta, rename{edits: edits})
}

// syncDir makes the pending changes of one directory durable. A rename between two directories goes with either.
func (f *FS) syncDir(dir *inode) {
	rest := f.meta[:0]
	for _, m := range f.meta {
		touches := slices.ContainsFunc(m.edits, func(e edit) bool { return e.dir == dir })
		if touches {
			m.keep()
		} else {
			rest = append(rest, m)
		}
	}
	f.meta = rest
}

var _ env.FS = (*FS)(nil)
var _ io.Closer = (*lock)(nil)
