package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/atrest"
)

// Inspect reads the log in the directory as Open does, and changes nothing: it ignores the rest of an unfinished append. The
// time is that of the last write to any of its files. The log must not be open elsewhere.
func Inspect(o Options) (Recovered, time.Time, error) {
	var written time.Time
	if err := o.fill(); err != nil {
		return Recovered{}, written, err
	}
	l, err := list(o.FS, o.Dir)
	if errors.Is(err, os.ErrNotExist) || (err == nil && len(l.segments) == 0) {
		return Recovered{}, written, fmt.Errorf("%w: %s", ErrNoLog, o.Dir)
	}
	if err != nil {
		return Recovered{}, written, err
	}
	run, _ := l.youngestRun()
	r := replay{options: o}
	defer r.close()
	if err := r.read(run); err != nil {
		return Recovered{}, written, err
	}
	for _, w := range r.windows {
		stat, err := w.file.Stat()
		if err != nil {
			return Recovered{}, written, fmt.Errorf("wal: stat %s: %w", w.name, err)
		}
		if stat.ModTime().After(written) {
			written = stat.ModTime()
		}
	}
	return r.recovered(&r.carried), written, nil
}

// CheckVersion returns ErrNewerVersion if a newer version wrote a segment of the log, whatever else the log holds. It ignores
// segments that it cannot read: Open reports them.
func CheckVersion(o Options) error {
	if err := o.fill(); err != nil {
		return err
	}
	l, err := list(o.FS, o.Dir)
	if err != nil {
		return nil
	}
	for _, n := range l.segments {
		if err := checkSegment(o.FS, o.FS.PathJoin(o.Dir, segmentName(n))); err != nil {
			return err
		}
	}
	return nil
}

func checkSegment(fs env.FS, path string) error {
	file, err := fs.Open(path)
	if err != nil {
		return nil
	}
	head := make([]byte, headerBytes)
	n, _ := io.ReadFull(file, head)
	_, err = decodeHeader(head[:n])
	if !errors.Is(err, ErrNewerVersion) {
		err = nil
	}
	return errors.Join(err, file.Close())
}

// KeyOf returns the data key that a segment was begun with, from its first 128 bytes. ok is false if they are no head of a
// sealed segment.
func KeyOf(head []byte) (id atrest.KeyID, ok bool) {
	h, err := decodeHeader(head)
	if err != nil || h.key == nil {
		return id, false
	}
	return h.key.id, true
}
