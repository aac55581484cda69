package page

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PlainKey reports whether a key is its own name: printable text that no form and no reader changes.
func PlainKey(key []byte) bool {
	if len(key) == 0 || !utf8.Valid(key) || key[0] == '"' || key[0] == ' ' || key[len(key)-1] == ' ' {
		return false
	}
	return bytes.IndexFunc(key, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) < 0
}

// KeyName is the text that names a key, or a prefix of keys: the key itself, or, if it has anything but printable characters,
// in quotes with the escapes of Go.
func KeyName(key []byte) string {
	if PlainKey(key) {
		return string(key)
	}
	return strconv.Quote(string(key))
}

// KeyOf is the key of a name; false: the name begins with a quote, and is not a quoted text.
func KeyOf(name string) (key []byte, ok bool) {
	if !strings.HasPrefix(name, `"`) {
		return []byte(name), true
	}
	text, err := strconv.Unquote(name)
	return []byte(text), err == nil
}

// KeyField is the name of a key, as somebody typed it, in the field of a form that is shown again: a name that no reader could
// tell from another is in quotes. One that KeyOf does not take stays, without what a reader must not be shown.
func KeyField(typed string) string {
	key, ok := KeyOf(typed)
	switch {
	case typed == "":
		return ""
	case !ok:
		return Text(typed)
	}
	return KeyName(key)
}
