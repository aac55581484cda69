package dev

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
)

const tailBytes = 64 << 10

// lastWords finds the line of a log, from an offset on, that best says why the member ended: its last plain line,
// which is what a program says when it gives up, or its last error; else its last line, which is then not severe.
func lastWords(log io.ReaderAt, from int64) (text string, severe bool) {
	tail := readTail(log, from)
	lines := bytes.Split(bytes.TrimRight(tail, "\n"), []byte("\n"))
	last := ""
	for _, line := range slices.Backward(lines) {
		text, severe := readLine(line)
		if severe {
			return text, true
		}
		if last == "" {
			last = text
		}
	}
	return last, false
}

func readTail(log io.ReaderAt, from int64) []byte {
	all := io.NewSectionReader(log, from, 1<<62-from)
	content := make([]byte, 0, tailBytes)
	chunk := make([]byte, tailBytes)
	for {
		n, err := all.Read(chunk)
		content = append(content, chunk[:n]...)
		if over := len(content) - tailBytes; over > 0 {
			content = append(content[:0], content[over:]...)
		}
		if err != nil || n == 0 {
			return content
		}
	}
}

// readLine returns the words of a log line without their dress, and whether they announce a failure.
func readLine(line []byte) (text string, severe bool) {
	var record map[string]any
	if json.Unmarshal(line, &record) != nil {
		text = strings.TrimSpace(string(line))
		// Stack traces are plain lines too; what matters in them is where they begin.
		return text, strings.HasPrefix(text, "quorate: ") || panicked(text)
	}
	text, _ = record["msg"].(string)
	for _, key := range []string{"err", "error"} {
		if cause, ok := record[key].(string); ok {
			text += ": " + cause
		}
	}
	level, _ := record["level"].(string)
	return text, level == "error" || level == "fatal" || level == "panic" || level == "dpanic"
}

// panicked reports whether the last words of a member are those of Go's runtime.
func panicked(text string) bool {
	return strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")
}
