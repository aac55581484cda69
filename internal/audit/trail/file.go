package trail

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/quorate/quorate/internal/audit"
)

// Rotation says when a file is put aside, and which of the old ones are kept.
type Rotation struct {
	MaxSizeMB  int
	MaxAgeDays int
	MaxBackups int
	LocalTime  bool
	Compress   bool
}

// ownSize keeps the library from putting a file aside by itself: a record that says so has to come first.
const ownSize = 1 << 20

// File is a FilePort: a file, and those that were put aside. Its goroutine is that of its Sink.
type File struct {
	logger *lumberjack.Logger
	most   int64    // bytes of a file
	held   *os.File // keeps other processes from the file
	info   fs.FileInfo
	size   int64
	last   time.Time // when it was put aside
}

// OpenFile opens a file of records, and says where its chain goes on. It refuses a file that holds anything else, and changes
// it then not.
func OpenFile(name string, r Rotation) (*File, Resume, error) {
	from, err := resume(name)
	if err != nil {
		return nil, Resume{}, fmt.Errorf("--audit-log %s: %w", name, err)
	}
	f := &File{most: int64(r.MaxSizeMB) << 20, logger: &lumberjack.Logger{Filename: name, MaxSize: ownSize,
		MaxAge: r.MaxAgeDays, MaxBackups: r.MaxBackups, LocalTime: r.LocalTime, Compress: r.Compress}}
	if err := f.open(); err != nil {
		return nil, Resume{}, fmt.Errorf("--audit-log %s: %w", name, err)
	}
	if from.Torn > 0 {
		if _, err := f.Write([]byte("\n")); err != nil {
			return nil, Resume{}, fmt.Errorf("--audit-log %s: %w", name, err)
		}
	}
	return f, from, nil
}

// newChain begins a chain.
func newChain() Resume {
	var id [8]byte
	_, _ = rand.Read(id[:]) // does not fail
	return Resume{Chain: audit.Chain{ID: max(binary.BigEndian.Uint64(id[:]), 1)}, Why: audit.Begins}
}

// tailBytes is how much of a file is read to find its last record.
const tailBytes = 1 << 20

var errForeign = errors.New("the file holds something else than records of an audit: move it away, or name another file")

// resume reads where the chain of a file goes on.
func resume(name string) (Resume, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newChain(), nil
	case err != nil:
		return Resume{}, err
	case !info.Mode().IsRegular():
		return Resume{}, fmt.Errorf("it is no regular file (%s): records are written to a file, or to `journal` or `syslog`",
			info.Mode().Type())
	case info.Size() == 0:
		return newChain(), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return Resume{}, err
	}
	defer f.Close()
	head := make([]byte, min(info.Size(), 4<<10))
	tail := make([]byte, min(info.Size(), tailBytes))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return Resume{}, err
	}
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return Resume{}, err
	}
	return resumeFrom(head, tail)
}

// resumeFrom is resume for the first and the last bytes of a file.
func resumeFrom(head, tail []byte) (Resume, error) {
	first, _, whole := bytes.Cut(head, []byte("\n"))
	_, chain, ok := audit.ChainOf(first)
	if !whole || !ok {
		return Resume{}, errForeign
	}
	end := bytes.LastIndexByte(tail, '\n') + 1
	r := Resume{Chain: audit.Chain{ID: chain}, Why: audit.Resumes, Torn: len(tail) - end}
	for end > 0 { // behind the last record there may be lines that a crash left
		line := tail[bytes.LastIndexByte(tail[:end-1], '\n')+1 : end-1]
		if r.Chain.Sequence, r.Chain.Sum, ok = audit.Last(line); ok {
			return r, nil
		}
		end -= len(line) + 1
	}
	return Resume{}, errForeign
}

// errHeld says that two members, or two outputs of one, would write into one chain.
var errHeld = errors.New("another output or process writes records to the file, mostly another member on this machine: " +
	"give each one a file of its own")

// open begins to write to the file of the name, which is made if it is not there, and keeps other processes from it.
func (f *File) open() error {
	f.release()
	name := f.logger.Filename
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file any more (%s)", name, info.Mode().Type())
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	made, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640) // the library's own are for this user alone
	if err != nil {
		return err
	}
	info, err := made.Stat()
	if err == nil && !hold(made) {
		err = errHeld
	}
	if err != nil {
		_ = made.Close()
		return err
	}
	f.held, f.info, f.size = made, info, info.Size()
	return nil
}

// release gives up the file that is written to, so that its room is free if it was removed.
func (f *File) release() {
	if f.held != nil {
		_ = f.held.Close()
		f.held = nil
	}
}

// Close gives up the file; another process may write to it then.
func (f *File) Close() error {
	f.release()
	if err := f.logger.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// Write implements Port.
func (f *File) Write(lines []byte) (int, error) {
	n, err := f.logger.Write(lines)
	f.size += int64(n)
	return n, err
}

// Look implements FilePort.
func (f *File) Look() (why string, err error) {
	info, err := os.Stat(f.logger.Filename)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return audit.Deleted, nil
	case err != nil:
		return "", err
	case !os.SameFile(info, f.info):
		return audit.Replaced, nil
	case info.Size() < f.size:
		return audit.Cut, nil
	}
	return "", nil
}

// Full implements FilePort.
func (f *File) Full(more int) bool { return f.most > 0 && f.size > 0 && f.size+int64(more) > f.most }

// apart is longer than what tells the names of two files that were put aside from each other.
const apart = 2 * time.Millisecond

// Renew implements FilePort.
func (f *File) Renew(why string) error {
	if why == audit.Rotated {
		if wait := apart - time.Since(f.last); wait > 0 {
			time.Sleep(wait)
		}
		f.last = time.Now()
		if err := f.logger.Rotate(); err != nil {
			return err
		}
		return f.open()
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := f.open(); err != nil || why != audit.Replaced {
		return err
	}
	if _, err := resume(f.logger.Filename); err != nil { // it may be any file, or a link to one
		return fmt.Errorf("%s: %w", f.logger.Filename, err)
	}
	return nil
}

// Sync implements FilePort. The file is opened once more for it: the library does not sync.
func (f *File) Sync() error {
	again, err := os.OpenFile(f.logger.Filename, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer again.Close()
	info, err := again.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, f.info) {
		return fmt.Errorf("%s is another file since", f.logger.Filename)
	}
	return again.Sync()
}

// Base implements FilePort.
func (f *File) Base() string { return filepath.Base(f.logger.Filename) }
