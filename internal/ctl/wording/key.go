package wording

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key is a key as a person reads it: quoted unless it is plain text.
func Key(key []byte) string {
	text := string(key)
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' || r == '"' }
	if text == "" || !utf8.Valid(key) || strings.ContainsFunc(text, odd) {
		return strconv.Quote(text)
	}
	return text
}
