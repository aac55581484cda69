// Package printable makes texts that another process said safe to print: on a terminal some characters move the cursor, hide
// what stands before them or turn the order of what follows.
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
