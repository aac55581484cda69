package logging

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// Format is a way to write a record.
type Format string

// The formats.
const (
	JSON    Format = "json"
	Console Format = "console"
)

// timeLayout is that of all times in the log, in UTC.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// Handler writes records to one output. Use NewHandler. The message and the attributes are encoded by slog's own JSON
// handler; what zap's encoder puts before them, or writes in another way, is added here.
type Handler struct {
	out    *output
	attrs  slog.Handler // writes {"msg":...,attributes} to out.encoded
	format Format
}

// output is what all handlers of one NewHandler share.
type output struct {
	mu      sync.Mutex
	w       io.Writer
	encoded bytes.Buffer
	line    bytes.Buffer
}

// NewHandler returns a handler that writes records of at least the level to w.
func NewHandler(w io.Writer, level slog.Leveler, format Format) *Handler {
	out := &output{w: w}
	attrs := slog.NewJSONHandler(&out.encoded, &slog.HandlerOptions{Level: level, ReplaceAttr: asZap})
	return &Handler{out: out, attrs: attrs, format: format}
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.attrs.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{out: h.out, attrs: h.attrs.WithAttrs(attrs), format: h.format}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{out: h.out, attrs: h.attrs.WithGroup(name), format: h.format}
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	inner := r
	inner.Time = time.Time{} // left out
	if h.format == Console {
		inner.Message = ""
	}
	o := h.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.encoded.Reset()
	o.line.Reset()
	if err := h.attrs.Handle(ctx, inner); err != nil {
		return err
	}
	if h.format == Console {
		writeConsole(&o.line, r, o.encoded.Bytes())
	} else {
		writeJSON(&o.line, r, o.encoded.Bytes())
	}
	_, err := o.w.Write(o.line.Bytes())
	return err
}

// writeJSON writes what comes before the message, and then the rest as it is encoded.
func writeJSON(line *bytes.Buffer, r slog.Record, encoded []byte) {
	line.WriteString(`{"level":"` + levelName(r.Level) + `","ts":"` + timeText(r.Time) + `",`)
	if caller, err := json.Marshal(callerOf(r.PC)); err == nil && r.PC != 0 {
		line.WriteString(`"caller":`)
		line.Write(caller)
		line.WriteByte(',')
	}
	line.Write(bytes.TrimPrefix(encoded, []byte("{")))
}

// noMessage begins what the inner handler writes for the console: the message stands before it.
const noMessage = `{"msg":""`

func writeConsole(line *bytes.Buffer, r slog.Record, encoded []byte) {
	line.WriteString(timeText(r.Time) + "\t" + levelName(r.Level) + "\t")
	if r.PC != 0 {
		line.WriteString(callerOf(r.PC) + "\t")
	}
	line.WriteString(r.Message)
	encoded = bytes.TrimPrefix(encoded, []byte(noMessage))
	if attrs, any := bytes.CutPrefix(encoded, []byte(",")); any {
		line.WriteString("\t{")
		line.Write(attrs)
		return
	}
	line.WriteByte('\n')
}

// asZap makes slog's JSON handler write values as zap's encoder does, and leaves the level out. It is called for
// attributes at any depth.
func asZap(groups []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindDuration:
		return slog.String(a.Key, a.Value.Duration().String())
	case slog.KindTime:
		return slog.String(a.Key, timeText(a.Value.Time()))
	case slog.KindAny:
		switch content := a.Value.Any().(type) {
		case slog.Level:
			if len(groups) == 0 && a.Key == slog.LevelKey {
				return slog.Attr{}
			}
		case error, json.Marshaler:
		case fmt.Stringer:
			return slog.String(a.Key, fmt.Sprint(content)) // which survives a nil pointer
		}
	}
	return a
}

func timeText(t time.Time) string { return t.UTC().Format(timeLayout) }

func levelName(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return "debug"
	case level < slog.LevelWarn:
		return "info"
	case level < slog.LevelError:
		return "warn"
	default:
		return "error"
	}
}

// callerOf names the line that logged as directory/file.go:line.
func callerOf(pc uintptr) string {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	dir, file := filepath.Split(frame.File)
	return filepath.Base(dir) + "/" + file + ":" + strconv.Itoa(frame.Line)
}
