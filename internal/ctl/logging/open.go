package logging

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
)

// Options say what is logged, how and where to.
type Options struct {
	Level   string // debug, info, warn, error; zap's higher levels mean error
	Format  Format
	Outputs []string // "default" and "stderr", "stdout", paths of files

	Stdout, Stderr io.Writer
}

// Open returns a logger, and what closes its files.
func Open(o Options) (*slog.Logger, io.Closer, error) {
	var outs []io.Writer
	var open files
	for _, name := range o.Outputs {
		switch name {
		case "default", "stderr":
			outs = append(outs, o.Stderr)
		case "stdout":
			outs = append(outs, o.Stdout)
		default:
			f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
			if err != nil {
				return nil, nil, errors.Join(fmt.Errorf("log to %s: %w", name, err), open.Close())
			}
			outs, open = append(outs, f), append(open, f)
		}
	}
	w := io.MultiWriter(outs...)
	if len(outs) == 1 {
		w = outs[0]
	}
	return slog.New(NewHandler(w, levelOf(o.Level), o.Format)), open, nil
}

func levelOf(name string) slog.Level {
	switch name {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error", "dpanic", "panic", "fatal":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

type files []*os.File

// Close closes all files.
func (f files) Close() error {
	var all error
	for _, file := range f {
		all = errors.Join(all, file.Close())
	}
	return all
}
