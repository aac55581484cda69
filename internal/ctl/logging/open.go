package logging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Options say what is logged, how and where to.
type Options struct {
	Level   string // debug, info, warn, error; zap's higher levels mean error
	Format  Format
	Outputs []string // "default" and "stderr", "stdout", "systemd/journal", paths of files
	// Rotation puts files aside that have become large; nil: they grow.
	Rotation *Rotation

	Stdout, Stderr io.Writer
}

// Log is a logger and its outputs.
type Log struct {
	*slog.Logger
	sinks []*Sink
	files []io.Closer
	apart *slog.Logger // writes to the files only; nil: there are none
}

// Open returns a logger that never waits for its outputs: each has a Sink of its own. Close it before the process ends.
func Open(o Options) (*Log, error) {
	log := &Log{}
	var outs, files []io.Writer
	add := func(w io.Writer) io.Writer {
		sink := NewSink(w, MaxQueuedBytes, func(dropped uint64) []byte { return notice(o.Format, dropped) })
		log.sinks, outs = append(log.sinks, sink), append(outs, sink)
		return sink
	}
	for _, name := range o.Outputs {
		switch name {
		case "default", "stderr":
			add(o.Stderr)
		case "stdout":
			add(o.Stdout)
		case "systemd/journal":
			add(openJournal(o.Stderr))
		default:
			f, err := openFile(name, o.Rotation)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("log to %s: %w", name, err), log.Close())
			}
			log.files = append(log.files, f)
			files = append(files, add(f))
		}
	}
	if len(files) > 0 {
		log.apart = slog.New(NewHandler(io.MultiWriter(files...), levelOf(o.Level), o.Format))
	}
	log.Logger = slog.New(NewHandler(io.MultiWriter(outs...), levelOf(o.Level), o.Format))
	return log, nil
}

// notice is the line that says how many lines are missing before it.
func notice(format Format, dropped uint64) []byte {
	var line bytes.Buffer
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were dropped: the output did not take them in time", 0)
	r.AddAttrs(slog.Uint64("dropped", dropped))
	if err := NewHandler(&line, slog.LevelWarn, format).Handle(context.Background(), r); err != nil {
		return nil
	}
	return line.Bytes()
}

// Last logs to the files why the process ends. The caller says it on standard error, too, which the other outputs come with.
func (l *Log) Last(err error) {
	if l.apart != nil && err != nil {
		l.apart.Error("ended", "err", err)
	}
}

// Dropped counts the lines that did not reach an output, summed over all of them.
func (l *Log) Dropped() uint64 {
	var n uint64
	for _, sink := range l.sinks {
		n += sink.Dropped()
	}
	return n
}

// Close gives the outputs a moment to take what waits, and closes the files.
func (l *Log) Close() error {
	var all error
	for _, sink := range l.sinks {
		all = errors.Join(all, sink.Close())
	}
	for _, f := range l.files {
		all = errors.Join(all, f.Close())
	}
	return all
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
