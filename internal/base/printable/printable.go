// Package printable makes texts that another process said safe to print: on a terminal some characters move the cursor, hide
// what stands before them or turn the order of what follows. Letters stay, also those that look like others.
package printable

import (
	"strings"
	"unicode"
)

// Text returns a text of at most so many characters without those that are not printed: controls, and marks of direction. A
// text that was cut ends with three dots.
func Text(text string, most int) string {
	kept, whole := strings.Builder{}, true
	for _, r := range text {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			continue
		}
		if most--; most < 0 {
			whole = false
			break
		}
		kept.WriteRune(r)
	}
	if !whole {
		kept.WriteString("...")
	}
	return kept.String()
}

// Within is Text for a text of at most so many bytes, four or more, with semicolons between its lines.
func Within(text string, bytes int) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
	for most := bytes; ; most -= 1 + (most-1)/8 {
		if cut := Text(text, most-len("...")); len(cut) <= bytes {
			return cut
		}
	}
}

// Lines is Text for each line of a text.
func Lines(text string, most int) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Text(lines[i], most)
	}
	return strings.Join(lines, "\n")
}
