package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
)

const (
	tempDir     = ".tmp"
	dirPerm     = 0o700
	copyBytes   = 128 << 10
	sweepAfter  = 24 * time.Hour // the age at which a file in .tmp belongs to a writer that died
	maxEnsured  = 4096
	groupOrElse = 0o022 // others than the owner may write
)

// temporary is the form of names of temporary files.
var temporary = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// Options are what a Store needs beside its directory.
type Options struct {
	// Unique returns a name of a temporary file that no other call of any process returned, in the form of rand.Text.
	Unique func() string
	// Now is the wall time, by which the files of writers that died are removed. If it is nil they stay.
	Now func() time.Time
	// ListBytes is the memory for names that are read beyond a page of a list, for the pages that follow within a minute; zero:
	// the directory is read for each page.
	ListBytes int64
}

// Store is an objects.Store in a directory.
type Store struct {
	fs   env.FS
	root string
	o    Options

	mu      sync.Mutex
	swept   bool
	ensured map[string]bool // directories that are there, and durable
	rests   rests
}

// Open returns the store in a directory, which must exist, and must be no data directory of a member nor lie in one.
func Open(fs env.FS, root string, o Options) (*Store, error) {
	root = fs.PathJoin(root, ".")
	s := &Store{fs: files.Below(fs, root), root: root, o: o, ensured: map[string]bool{}}
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, refuseDataDirectory(fs, root)
}

// Warnings returns sentences about the directory that an operator should read, and none if all is well.
func (s *Store) Warnings() []string {
	info, err := s.fs.Stat(s.root)
	if err != nil || info.Mode().Perm()&groupOrElse == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s can be written by others than its owner (mode %04o): they can remove or replace objects",
		s.root, info.Mode().Perm())}
}

// check returns an error unless the root is a directory.
func (s *Store) check() error {
	info, err := s.fs.Stat(s.root)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: %w", s.root, objects.ErrNoPlace)
	case err != nil:
		return tell(err)
	case !info.IsDir():
		return fmt.Errorf("%s: %w: it is no directory", s.root, objects.ErrNoPlace)
	}
	return nil
}

// dataOf are names that only data directories have, ours and etcd's, below the directory or below its member.
var dataOf = []string{"member/boots", "member/wal", "member/stores", "member/snap", "member.partial", "stores/CURRENT"}

func refuseDataDirectory(fs env.FS, root string) error {
	for dir := root; ; {
		for _, name := range dataOf {
			if _, err := fs.Stat(fs.PathJoin(dir, name)); err == nil {
				return fmt.Errorf("%s is, or lies in, the data directory of a member (%s has %s): "+
					"objects belong on another disk", root, dir, name)
			}
		}
		parent := fs.PathDir(dir)
		if parent == dir {
			return nil
		}
		dir = parent
	}
}

// tell gives an error of the file system the kind that callers tell apart.
func tell(err error) error {
	for _, row := range kinds {
		if errors.Is(err, row.is) {
			return fmt.Errorf("%w: %w", row.kind, err)
		}
	}
	return err
}

func (s *Store) path(name string) string {
	return s.fs.PathJoin(append([]string{s.root}, strings.Split(name, "/")...)...)
}

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, name string, body io.ReadSeeker, size int64) (err error) {
	if err := errors.Join(objects.CheckName(name), objects.CheckSize(size)); err != nil {
		return err
	}
	path := s.path(name)
	if err := s.begin(path); err != nil {
		return tell(err)
	}
	if _, err := s.fs.Stat(path); err == nil {
		return s.exists(name, path)
	}
	temp := s.fs.PathJoin(s.root, tempDir, s.o.Unique())
	defer func() {
		if removeErr := s.fs.Remove(temp); err == nil && !errors.Is(removeErr, os.ErrNotExist) {
			err = removeErr
		}
	}()
	if err := s.write(ctx, temp, body, size); err != nil {
		return fmt.Errorf("write %s: %w", name, tell(err))
	}
	err = s.link(temp, path)
	if errors.Is(err, os.ErrExist) {
		return s.exists(name, path)
	}
	if err == nil {
		err = durable.SyncDir(s.fs, s.fs.PathDir(path))
	}
	if err != nil {
		s.forget()
		return fmt.Errorf("name %s: %w", name, tell(err))
	}
	return nil
}

// exists returns ErrExists once the name is durable: the writer that gave it may not have lived to see to that.
func (s *Store) exists(name, path string) error {
	if err := durable.SyncDir(s.fs, s.fs.PathDir(path)); err != nil {
		return tell(err)
	}
	return fmt.Errorf("%s: %w", name, objects.ErrExists)
}

// own returns an ErrLink if a directory below the root, or one between, is a link, a pipe or a device: those who can write to
// the place would lead what is read, written and removed elsewhere, such as into a data directory.
//
// It looks before the directory is used. One who swaps the directory between the two is not seen: he can lead the store to
// another directory of the place, and nowhere else (files.Below).
func (s *Store) own(dir string) error {
	for ; dir != s.root; dir = s.fs.PathDir(dir) {
		if err := files.CheckNoLink(s.fs, dir); err != nil {
			return fmt.Errorf("%w: %w", objects.ErrLink, err)
		}
	}
	return nil
}

// begin makes the directories that a path needs, below the root, which must be there.
func (s *Store) begin(path string) error {
	temp, dir := s.fs.PathJoin(s.root, tempDir), s.fs.PathDir(path)
	if err := errors.Join(s.check(), s.own(temp), s.own(dir)); err != nil {
		return err
	}
	if err := s.ensure(temp); err != nil {
		return err
	}
	s.sweep()
	return s.ensure(dir)
}

// ensure makes a directory below the root durable, and those between.
func (s *Store) ensure(dir string) error {
	if dir == s.root || s.known(dir) {
		return nil
	}
	parent := s.fs.PathDir(dir)
	if err := s.ensure(parent); err != nil {
		return err
	}
	if err := s.fs.MkdirAll(dir, dirPerm); err != nil {
		return err
	}
	if err := durable.SyncDir(s.fs, parent); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ensured) >= maxEnsured {
		clear(s.ensured)
	}
	s.ensured[dir] = true
	return nil
}

// known tells whether a directory was made durable, and is still there.
func (s *Store) known(dir string) bool {
	s.mu.Lock()
	known := s.ensured[dir]
	s.mu.Unlock()
	if !known {
		return false
	}
	_, err := s.fs.Stat(dir)
	return err == nil
}

func (s *Store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.ensured)
}

// sweep removes, once, what writers left that died. Files of other names are not theirs.
func (s *Store) sweep() {
	s.mu.Lock()
	first := !s.swept && s.o.Now != nil
	s.swept = true
	s.mu.Unlock()
	if !first {
		return
	}
	dir, seen := s.fs.PathJoin(s.root, tempDir), 0
	_ = files.EachName(s.fs, dir, func(name string) error { // what cannot be listed stays
		if seen++; seen > mostSwept {
			return errSwept
		}
		if !temporary.MatchString(name) {
			return nil
		}
		path := s.fs.PathJoin(dir, name)
		if info, err := s.fs.Stat(path); err == nil && info.Mode().IsRegular() && s.o.Now().Sub(info.ModTime()) > sweepAfter {
			_ = s.fs.Remove(path) // another writer may have removed it
		}
		return nil
	})
}

// mostSwept is how many names a sweep looks at: a put waits for it, and the rest stays for the next process.
const mostSwept = 10_000

var errSwept = errors.New("swept")

// write makes a file with the body, and makes it durable.
func (s *Store) write(ctx context.Context, path string, body io.ReadSeeker, size int64) error {
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return err
	}
	file, err := s.fs.Create(path)
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(onlyWriter{file}, &during{ctx, io.LimitReader(body, size)}, make([]byte, copyBytes))
	if err == nil && n != size {
		err = fmt.Errorf("a body of %d bytes ends after %d", size, n)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// onlyWriter hides the other methods of a file: a copy keeps to its buffer, and looks at the context between two.
type onlyWriter struct{ io.Writer }

// during is a reader that ends with a context.
type during struct {
	ctx  context.Context
	body io.Reader
}

// Read implements io.Reader.
func (d *during) Read(p []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	return d.body.Read(p)
}

// link gives a file its name, and fails with os.ErrExist if the name is taken.
func (s *Store) link(temp, path string) error {
	err := s.fs.Link(temp, path)
	if err == nil || !hasNoLinks(err) {
		return err
	}
	if _, err := s.fs.Stat(path); err == nil {
		return os.ErrExist
	}
	return s.fs.Rename(temp, path)
}

// Delete implements objects.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := errors.Join(objects.CheckName(name), ctx.Err(), s.check()); err != nil {
		return err
	}
	path := s.path(name)
	if err := s.own(s.fs.PathDir(path)); err != nil {
		return err
	}
	if info, err := s.fs.Stat(path); isAbsent(err) || err == nil && info.IsDir() {
		return nil
	}
	err := s.fs.Remove(path)
	if isAbsent(err) {
		return nil
	}
	if err == nil {
		err = durable.SyncDir(s.fs, s.fs.PathDir(path))
	}
	return tell(err)
}
