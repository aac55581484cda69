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
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

// Format is a way to write a record.
type Format string

// The formats.
const (
	JSON    Format = "json"
	Console Format = "console"
)

// Handler writes records to one output. Use NewHandler.
type Handler struct {
	out    *output
	level  slog.Leveler
	format Format
	pairs  pairs
}

type output struct {
	mu sync.Mutex
	w  io.Writer
}

// NewHandler returns a handler that writes records of at least the level to w.
func NewHandler(w io.Writer, level slog.Leveler, format Format) *Handler {
	return &Handler{out: &output{w: w}, level: level, format: format}
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	inner := *h
	inner.pairs = h.pairs.clone()
	for _, a := range attrs {
		inner.pairs.add(a)
	}
	return &inner
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	inner := *h
	inner.pairs = h.pairs.clone()
	inner.pairs.pending = append(inner.pairs.pending, name)
	return &inner
}

// Handle implements slog.Handler.
func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	p := h.pairs.clone()
	r.Attrs(func(a slog.Attr) bool {
		p.add(a)
		return true
	})
	encoded := p.close()
	line := make([]byte, 0, 128+len(r.Message)+len(encoded))
	if h.format == Console {
		line = appendConsole(line, r, encoded)
	} else {
		line = appendJSON(line, r, encoded)
	}
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := h.out.w.Write(line)
	return err
}

// pairs are encoded attributes, each preceded by a comma where its place needs one. A group is opened by the first
// attribute in it: slog wants empty groups to vanish.
type pairs struct {
	encoded []byte
	open    int
	pending []string
}

func (p pairs) clone() pairs {
	return pairs{bytes.Clone(p.encoded), p.open, slices.Clone(p.pending)}
}

func (p *pairs) add(a slog.Attr) {
	opened := p.encoded
	for _, name := range p.pending {
		opened = append(appendKey(opened, name), '{')
	}
	after := appendAttr(opened, a)
	if len(after) == len(opened) {
		return
	}
	p.encoded = after
	p.open += len(p.pending)
	p.pending = nil
}

func (p *pairs) close() []byte {
	return append(p.encoded, bytes.Repeat([]byte{'}'}, p.open)...)
}

func appendJSON(line []byte, r slog.Record, pairs []byte) []byte {
	line = append(line, `{"level":"`...)
	line = append(line, levelName(r.Level)...)
	line = append(line, `","ts":"`...)
	line = appendTime(line, r.Time)
	line = append(line, '"')
	if caller := callerOf(r.PC); caller != "" {
		line = append(line, `,"caller":`...)
		line = appendText(line, caller)
	}
	line = append(line, `,"msg":`...)
	line = appendText(line, r.Message)
	line = append(line, pairs...)
	return append(line, '}', '\n')
}

func appendConsole(line []byte, r slog.Record, pairs []byte) []byte {
	line = appendTime(line, r.Time)
	line = append(line, '\t')
	line = append(line, levelName(r.Level)...)
	line = append(line, '\t')
	if caller := callerOf(r.PC); caller != "" {
		line = append(line, caller...)
		line = append(line, '\t')
	}
	line = append(line, r.Message...)
	if len(pairs) > 0 {
		line = append(line, '\t', '{')
		line = append(line, bytes.TrimPrefix(pairs, []byte{','})...)
		line = append(line, '}')
	}
	return append(line, '\n')
}

func appendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
}

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
	if pc == 0 {
		return ""
	}
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if frame.File == "" {
		return ""
	}
	dir, file := filepath.Split(frame.File)
	return filepath.Base(dir) + "/" + file + ":" + strconv.Itoa(frame.Line)
}

func appendAttr(dst []byte, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		members := v.Group()
		if len(members) == 0 {
			return dst
		}
		if a.Key != "" {
			dst = append(appendKey(dst, a.Key), '{')
		}
		for _, m := range members {
			dst = appendAttr(dst, m)
		}
		if a.Key != "" {
			dst = append(dst, '}')
		}
		return dst
	}
	if a.Key == "" && v.Any() == nil {
		return dst
	}
	return appendValue(appendKey(dst, a.Key), v)
}

// appendKey opens a pair, with the comma that its place needs.
func appendKey(dst []byte, key string) []byte {
	if len(dst) == 0 || dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(appendText(dst, key), ':')
}

func appendValue(dst []byte, v slog.Value) []byte {
	switch v.Kind() {
	case slog.KindString:
		return appendText(dst, v.String())
	case slog.KindInt64:
		return strconv.AppendInt(dst, v.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(dst, v.Uint64(), 10)
	case slog.KindBool:
		return strconv.AppendBool(dst, v.Bool())
	case slog.KindDuration:
		return appendText(dst, v.Duration().String())
	case slog.KindTime:
		return append(appendTime(append(dst, '"'), v.Time()), '"')
	}
	switch content := v.Any().(type) {
	case nil:
		return append(dst, "null"...)
	case error:
		return appendText(dst, content.Error())
	case json.Marshaler:
	case fmt.Stringer:
		return appendText(dst, content.String())
	}
	encoded, err := json.Marshal(v.Any())
	if err != nil {
		return appendText(dst, fmt.Sprintf("%+v", v.Any()))
	}
	return append(dst, encoded...)
}

const hexDigits = "0123456789abcdef"

// appendText writes a JSON string. Unlike encoding/json it leaves <, > and & readable.
func appendText(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, `\ufffd`...)
			} else {
				dst = append(dst, text[i:i+size]...)
			}
			i += size
			continue
		}
		i++
	}
	return append(dst, '"')
}
