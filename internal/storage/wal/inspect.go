package wal

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Inspect reads the log in the directory as Open does, and changes nothing: what an unfinished append left is not seen.
// The time is that of the last write to any of its files. The log must not be open elsewhere.
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
