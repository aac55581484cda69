package logging

import (
	"io"
	"os"

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

// openFile opens a file to log to. It must be writable now: a logger that finds out later tells nobody.
func openFile(name string, rotation *Rotation) (io.WriteCloser, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil || rotation == nil {
		return f, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return &lumberjack.Logger{Filename: name, MaxSize: rotation.MaxSizeMB, MaxAge: rotation.MaxAgeDays,
		MaxBackups: rotation.MaxBackups, LocalTime: rotation.LocalTime, Compress: rotation.Compress}, nil
}
