package main

import (
	"strings"
	"unicode"
)

// printable returns a text without the characters that a terminal obeys or that turn the order of others. Names and claims come
// out of files that are not trusted. Package internal/base/printable of the main module does the same; this module does not
// depend on that one, which it builds from any commit.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text)
}

// printableLines is printable for each line of a text.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
