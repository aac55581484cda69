package keys

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Bounds of what is shown of a value.
const (
	mostText   = 64 << 10 // bytes of a text
	mostDump   = 16 << 10 // bytes of a hex dump
	mostMarks  = 2000     // characters of a text that are not printed: with more it is shown as bytes
	mostIndent = 192 << 10
	mostDepth  = 64 // of JSON that is indented
)

// run is a part of a text: as it is, or an escape for a character that is not printed.
type run struct {
	Text string
	Mark bool
}

// valueView is a value as it is shown.
type valueView struct {
	Kind     string // empty, text, JSON, YAML, Kubernetes protobuf, binary
	Facts    []fact // what a Kubernetes object says about itself
	Runs     []run
	Dump     string
	Size     int
	Shown    int    // bytes that are shown; Size: all
	Indented bool   // for the reader: the value has other spaces
	Ends     string // of lines, in words, if they are not line feeds
}

const (
	kindEmpty  = "empty"
	kindText   = "text"
	kindJSON   = "JSON"
	kindYAML   = "YAML"
	kindKube   = "Kubernetes protobuf"
	kindBinary = "binary"
)

// viewOf decides how a value is shown.
func viewOf(value []byte) valueView {
	v := valueView{Kind: kindOf(value), Size: len(value), Shown: len(value)}
	switch v.Kind {
	case kindEmpty:
	case kindKube:
		v.Facts = factsOf(value)
		v.dump(value)
	case kindBinary:
		v.dump(value)
	default:
		v.text(value)
	}
	return v
}

// kindOf is the format of a value, by its content.
func kindOf(value []byte) string {
	switch {
	case len(value) == 0:
		return kindEmpty
	case bytes.HasPrefix(value, kubeMagic):
		return kindKube
	case !utf8.Valid(value) || bytes.IndexByte(value, 0) >= 0 || marksIn(value) > mostMarks:
		return kindBinary
	case json.Valid(value) && bytes.ContainsAny(bytes.TrimSpace(value)[:1], `{["`):
		return kindJSON
	case looksYAML(value):
		return kindYAML
	}
	return kindText
}

// marksIn counts the characters that are not printed, up to a bound, in as much as is shown.
func marksIn(value []byte) (count int) {
	for _, r := range string(value[:min(len(value), mostText)]) {
		if hidden(r) && r != '\n' && r != '\r' {
			count++
		}
	}
	return count
}

// looksYAML reports whether all lines that are not indented are keys, items, comments or marks of YAML, and some are keys.
func looksYAML(value []byte) bool {
	keys := 0
	for line := range bytes.Lines(value[:min(len(value), mostText)]) {
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0, line[0] == ' ', line[0] == '#', bytes.HasPrefix(line, []byte("- ")), string(line) == "-",
			string(line) == "---", string(line) == "...":
			continue
		}
		at := bytes.IndexByte(line, ':')
		if at <= 0 || at+1 < len(line) && line[at+1] != ' ' || bytes.ContainsAny(line[:at], " \t\"'{}[],&*") {
			return false
		}
		keys++
	}
	return keys > 0
}

// text shows a text: JSON with line breaks if it has few levels, anything else as it is.
func (v *valueView) text(value []byte) {
	if v.Kind == kindJSON && len(value) <= mostText {
		if indented, ok := indent(value); ok {
			v.Indented = !bytes.Equal(indented, value)
			v.Runs = runsOf(string(indented))
			return
		}
	}
	value = value[:min(len(value), mostText)]
	for len(value) > 0 && !utf8.Valid(value) { // the cut is within a character
		value = value[:len(value)-1]
	}
	v.Shown = len(value)
	v.Ends = endsInWords(value)
	v.Runs = runsOf(strings.ReplaceAll(string(value), "\r\n", "\n"))
}

func (v *valueView) dump(value []byte) {
	v.Shown = min(len(value), mostDump)
	v.Dump = hex.Dump(value[:v.Shown])
}

// endsInWords says how lines end, unless it is with line feeds.
func endsInWords(text []byte) string {
	pairs, feeds := bytes.Count(text, []byte("\r\n")), bytes.Count(text, []byte("\n"))
	switch {
	case pairs == 0:
		return ""
	case pairs == feeds:
		return "carriage return and line feed"
	}
	return "some with carriage return and line feed, some with line feed"
}

// runsOf divides a text into printable runs and escapes. Line feeds and tabs are as they are.
func runsOf(text string) (runs []run) {
	plain := 0
	for i, r := range text {
		if r != '\n' && hidden(r) {
			if plain < i {
				runs = append(runs, run{Text: text[plain:i]})
			}
			plain = i + utf8.RuneLen(r)
			runs = append(runs, run{escape(text[i:plain]), true})
		}
	}
	if plain < len(text) {
		runs = append(runs, run{Text: text[plain:]})
	}
	return runs
}

// indent breaks JSON into lines. It returns false if the result would be too large: JSON that is nested deeply grows by its
// square.
func indent(value []byte) ([]byte, bool) {
	size, depth := len(value), 0
	quoted, escaped := false, false
	for _, c := range value {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped = c == '\\'
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{', c == '[':
			depth++
			size += 1 + 2*depth
		case c == '}', c == ']':
			depth--
			size += 1 + 2*depth
		case c == ',':
			size += 1 + 2*depth
		case c == ':':
			size++
		}
		if depth > mostDepth || size > mostIndent {
			return nil, false
		}
	}
	var out bytes.Buffer
	if json.Indent(&out, value, "", "  ") != nil {
		return nil, false
	}
	return out.Bytes(), true
}
