package keys

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/undelete"
)

const (
	// mostLink bounds the name of a key in a link. Longer keys are shown, and have no page.
	mostLink = 6000
	// mostShown is how many characters of a key are shown in a list.
	mostShown = 160
	separator = '/'
)

// isPlain and nameOf are those of all pages.
func isPlain(key []byte) bool  { return page.PlainKey(key) }
func nameOf(key []byte) string { return page.KeyName(key) }

// keyOf is the key of a name.
func keyOf(name string) ([]byte, error) {
	key, ok := page.KeyOf(name)
	if !ok {
		return nil, badf("%s begins with a quote, so it must end with one, and what is between them is read as in Go: "+
			"\\x00 is a byte, \\\" a quote, \\\\ a backslash.", cut(name, mostShown))
	}
	return key, nil
}

// badf is a fault of what was asked for, in words for the reader.
func badf(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// cut is a text of at most so many characters. One that was cut ends with three dots.
func cut(text string, most int) string {
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// short is the name of a key as lists show it.
func short(key []byte) string {
	if len(key) <= mostShown {
		return cut(nameOf(key), mostShown)
	}
	head := key[:mostShown]
	for len(head) > mostShown-utf8.UTFMax && !utf8.Valid(head) {
		head = head[:len(head)-1]
	}
	if !utf8.Valid(head) {
		head = key[:mostShown]
	}
	return cut(nameOf(head), mostShown) + "… (" + page.Bytes(len(key)) + ")"
}

// to is a link to a page, with pairs of a query. Pairs without a value are left out. It is empty if it would be too long.
func to(path string, pairs ...string) string {
	out := strings.Builder{}
	out.WriteString(path)
	for i, mark := 0, byte('?'); i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		out.WriteByte(mark)
		out.WriteString(pairs[i] + "=" + url.QueryEscape(pairs[i+1]))
		mark = '&'
	}
	if out.Len() > mostLink {
		return ""
	}
	return out.String()
}

func toKey(path string, key []byte, pairs ...string) string {
	return to(path, append([]string{"key", nameOf(key)}, pairs...)...)
}

// toPrefix leaves the empty prefix out.
func toPrefix(path string, prefix []byte, pairs ...string) string {
	name := ""
	if len(prefix) > 0 {
		name = nameOf(prefix)
	}
	return to(path, append([]string{"prefix", name}, pairs...)...)
}

func toLease(id int64) string { return to("/keys/lease", "id", hexOf(id)) }

// hexOf is the id of a lease as commands print it.
func hexOf(id int64) string { return strconv.FormatUint(uint64(id), 16) }

// number is a revision in a query; empty: 0.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// keyIn is the key that a query or a form names.
func keyIn(q url.Values) ([]byte, error) {
	name := q.Get("key")
	if name == "" {
		return nil, badf("The address names no key. Choose one on the page Keys.")
	}
	key, err := keyOf(name)
	if err == nil && len(key) == 0 {
		err = badf("A key has at least one byte.")
	}
	return key, err
}

func prefixIn(q url.Values) ([]byte, error) { return keyOf(q.Get("prefix")) }

// revisionIn is a revision of a query; 0: it has none.
func revisionIn(q url.Values, name string) (int64, error) {
	text := q.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, badf("%q is no revision: a revision is a whole number.", cut(page.Text(text), 40))
	}
	return n, nil
}

// rangeOf is the range of the keys with a prefix, as etcd writes it.
func rangeOf(prefix []byte) (key, end []byte) { return undelete.Prefix(prefix) }

// command is a command line that names a key. Only keys that a terminal shows as they are have one.
func command(r *page.Request, key []byte, words ...string) string {
	if len(key) > 0 && (!isPlain(key) || key[0] == '-' || len(key) > 4*mostShown) {
		return ""
	}
	return r.Command(append(words, string(key))...)
}

// visible is a text in which each character that is not printed is an escape. Tabs stay.
func visible(text string) string {
	if strings.IndexFunc(text, hidden) < 0 && utf8.ValidString(text) {
		return text
	}
	out := strings.Builder{}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if part := text[i : i+size]; r == utf8.RuneError && size == 1 || hidden(r) {
			out.WriteString(escape(part))
		} else {
			out.WriteString(part)
		}
		i += size
	}
	return out.String()
}

// escape is one character, or a byte that is none, as an escape.
func escape(part string) string {
	quoted := strconv.Quote(part)
	return quoted[1 : len(quoted)-1]
}

func hidden(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }
