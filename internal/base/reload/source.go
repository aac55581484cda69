package reload

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Options of Open.
type Options struct {
	// The name of the files in logs, as "TLS files".
	What string
	// Paths are the files; empty ones are left out.
	Paths []string
	// Interval is for how long the files are not looked at again. Zero: they are at every call, which costs microseconds.
	Interval time.Duration
	Clock    interface{ Now() time.Time }
	Logger   *slog.Logger
}

// retryPause is how long files that could not be read, and look the same since, are not read again.
const retryPause = time.Second

// Source is what some files hold together.
type Source[T any] struct {
	options Options
	read    func() (T, error)

	mu     sync.Mutex
	looked time.Time
	seen   []fs.FileInfo // when the files were last read, whether that went well or not; nil: cannot be found
	value  T             // the last that could be read
	failed error         // why what was read last could not be used; nil: it could
	retry  time.Time     // when to try again then
}

// Open reads the files for the first time, which must go well.
func Open[T any](options Options, read func() (T, error)) (*Source[T], error) {
	s := &Source[T]{options: options, read: read}
	s.due()
	s.seen = s.look()
	var err error
	s.value, err = read()
	return s, err
}

// Get returns what the files hold now.
func (s *Source[T]) Get() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.due() {
		return s.value
	}
	files, now := s.look(), s.options.Clock.Now()
	if sameFiles(s.seen, files) && (s.failed == nil || now.Before(s.retry)) {
		return s.value
	}
	known := s.failed != nil && sameFiles(s.seen, files)
	s.seen = files
	value, err := s.read()
	if err != nil {
		if !known || err.Error() != s.failed.Error() {
			s.options.Logger.Warn("changed "+s.options.What+" cannot be used; those read before stay in force", "err", err)
		}
		s.failed, s.retry = err, now.Add(retryPause)
		return s.value
	}
	s.failed = nil
	s.options.Logger.Info("read changed "+s.options.What, "files", s.options.Paths)
	s.value = value
	return value
}

// due reports whether the files must be looked at, and takes note that they are.
func (s *Source[T]) due() bool {
	if s.options.Interval == 0 {
		return true
	}
	now := s.options.Clock.Now()
	if !s.looked.IsZero() && now.Sub(s.looked) < s.options.Interval {
		return false
	}
	s.looked = now
	return true
}

func (s *Source[T]) look() []fs.FileInfo {
	infos := make([]fs.FileInfo, len(s.options.Paths))
	for i, path := range s.options.Paths {
		if info, err := os.Stat(path); err == nil && path != "" {
			infos[i] = info
		}
	}
	return infos
}

// sameFiles compares identity too: Kubernetes replaces secrets by turning a symbolic link.
func sameFiles(a, b []fs.FileInfo) bool {
	for i := range a {
		switch {
		case a[i] == nil || b[i] == nil:
			if a[i] != b[i] {
				return false
			}
		case !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size():
			return false
		}
	}
	return true
}

// File is a file with the flag or option that names it.
type File struct{ Flag, Path string }

func (f File) String() string { return f.Flag + " " + f.Path }

// Bytes reads the file; one without a path is empty.
func (f File) Bytes() ([]byte, error) {
	if f.Path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(f.Path)
	var inner *fs.PathError
	if errors.As(err, &inner) {
		// Without its type: a caller that reads it would advise about the data directory's permissions.
		return nil, fmt.Errorf("%v: %v", f, inner.Err)
	}
	return raw, err
}
