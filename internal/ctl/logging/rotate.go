package logging

import (
	"bytes"
	"io"
	"os"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
)

// Rotation says when a file of the log is put aside and a new one begun, and which of the old ones are kept. The fields and
// their meanings are those of --log-rotation-config-json.
type Rotation struct {
	MaxSizeMB  int  // a file larger than that is put aside
	MaxAgeDays int  // older ones are removed; 0: none is for its age
	MaxBackups int  // more than so many are removed; 0: none is
	LocalTime  bool // in the names of old files; else UTC
	Compress   bool // with gzip
}

// openFile opens a file to log to. It must be writable now: a logger that finds out later cannot tell.
func openFile(name string, rotation *Rotation) (io.WriteCloser, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil || rotation == nil {
		return f, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return &rotated{Logger: &lumberjack.Logger{Filename: name, MaxSize: rotation.MaxSizeMB, MaxAge: rotation.MaxAgeDays,
		MaxBackups: rotation.MaxBackups, LocalTime: rotation.LocalTime, Compress: rotation.Compress},
		most: max(rotation.MaxSizeMB<<20, 1<<20)}, nil
}

// rotated takes many lines at once. A lumberjack.Logger refuses what is longer than a file, and names the files that it puts
// aside by the millisecond: a second one of the same name would replace the first.
type rotated struct {
	*lumberjack.Logger
	most  int // bytes of a file
	since int // bytes that were written since the last pause
}

// rotatePause is longer than what tells the names of two files apart.
const rotatePause = 2 * time.Millisecond

// Write writes lines in parts of half a file at most, and pauses after each half, so that there is a pause between two
// rotations. Only a Sink calls it, which may wait. A line that is longer than a file is refused.
func (r *rotated) Write(lines []byte) (n int, err error) {
	half := r.most / 2
	for n < len(lines) {
		part := lines[n:]
		if len(part) > half {
			end := bytes.LastIndexByte(part[:half], '\n')
			if end < 0 {
				end = bytes.IndexByte(part, '\n')
			}
			if end >= 0 {
				part = part[:end+1]
			}
		}
		if r.since += len(part); r.since > half {
			time.Sleep(rotatePause)
			r.since = len(part)
		}
		wrote, err := r.Logger.Write(part)
		if n += wrote; err != nil {
			return n, err
		}
	}
	return n, nil
}
