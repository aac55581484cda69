package users

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/authpb"

	"github.com/quorate/quorate/internal/console/page"
)

// mostKey is how many bytes of a name or a key a command line has.
const mostKey = 200

// everyKey is the end of a range that has none, as etcd writes it.
const everyKey = "\x00"

// accessOf says what a permission permits.
func accessOf(access authpb.Permission_Type) string {
	switch access {
	case authpb.READ:
		return "read"
	case authpb.WRITE:
		return "write"
	}
	return "read and write"
}

// keysOf says in words which keys an etcd pair means.
func keysOf(key, end []byte) string {
	from := string(key)
	switch to := string(end); {
	case (from == "" || from == everyKey) && to == everyKey:
		return "every key"
	case to == "":
		return "the key " + shown(from)
	case to == everyKey:
		return "keys from " + shown(from) + " on"
	case to == string(prefixEnd(key)):
		return "keys that begin with " + shown(from)
	default:
		return "keys from " + shown(from) + " to before " + shown(to)
	}
}

// prefixEnd is the end of the range of keys that begin with a key, as etcd's clients write it.
func prefixEnd(key []byte) []byte {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] < 0xff {
			end := append([]byte(nil), key[:i+1]...)
			end[i]++
			return end
		}
	}
	return []byte(everyKey)
}

// shown is a key or a name as pages show it.
func shown(text string) string { return page.Name(text) }

// escapes says how a key is typed that is no text.
const escapes = "A key in double quotes has escapes such as \\x00 and \\n, and no other quote inside."

// typedKey is the key that a reader typed: as it is, or in double quotes with escapes, as pages show one that is no text.
func typedKey(text string) (key []byte, ok bool) {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return []byte(text), true
	}
	unquoted, err := strconv.Unquote(text)
	return []byte(unquoted), err == nil
}

// The kinds of ranges that a form offers.
const (
	kindKey    = "key"
	kindPrefix = "prefix"
	kindFrom   = "from"
	kindRange  = "range"
	kindAll    = "all"
)

// typedRange is the etcd pair that a form means. Its error is a sentence for the reader.
func typedRange(kind, key, end string) (from, to []byte, err error) {
	from, ok := typedKey(key)
	to, good := typedKey(end)
	switch {
	case !ok || !good:
		return nil, nil, page.FormError(escapes)
	case kind == kindAll || kind == kindPrefix && len(from) == 0:
		return []byte(everyKey), []byte(everyKey), nil
	case len(from) == 0:
		return nil, nil, page.FormError("No key is empty: give one, or choose the keys with a prefix, or every key.")
	case kind == kindPrefix:
		return from, prefixEnd(from), nil
	case kind == kindFrom:
		return from, []byte(everyKey), nil
	case kind == kindRange && bytes.Compare(from, to) >= 0:
		return nil, nil, page.FormError("The range has no key: its end must come after its first key.")
	case kind == kindRange:
		return from, to, nil
	}
	return from, nil, nil
}

// rangeWords are the words of a command line that mean an etcd pair; false: a command line cannot have them.
func rangeWords(key, end []byte) ([]string, bool) {
	from := string(key)
	switch to := string(end); {
	case from == everyKey && to == everyKey:
		return []string{"", "--prefix"}, true
	case !typeable(from):
		return nil, false
	case to == "":
		return []string{from}, true
	case to == everyKey:
		return []string{from, "--from-key"}, true
	case to == string(prefixEnd(key)):
		return []string{from, "--prefix"}, true
	default:
		return []string{from, to}, typeable(to)
	}
}

// packed is a key as a link has it.
func packed(key []byte) string { return base64.RawURLEncoding.EncodeToString(key) }

func unpacked(text string) ([]byte, bool) {
	key, err := base64.RawURLEncoding.DecodeString(text)
	return key, err == nil
}

// typeable reports whether a shell takes a text as it is shown.
func typeable(texts ...string) bool {
	for _, text := range texts {
		odd := func(r rune) bool { return !unicode.IsPrint(r) }
		if text == "" || text[0] == '-' || !utf8.ValidString(text) || len(text) > mostKey || strings.ContainsFunc(text, odd) {
			return false
		}
	}
	return true
}
