package keys

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/console/page"
)

// mostEdited bounds a value in a form: its page must not exceed what a section may have, with all characters escaped.
const mostEdited = 128 << 10

// whyFixed says why a value cannot be edited in a form; empty: it can be. A browser sends every line end as a carriage return
// with a line feed, and drops or replaces some characters.
func whyFixed(value []byte) string {
	switch {
	case len(value) > mostEdited:
		return "it is larger than " + page.Bytes(mostEdited)
	case !utf8.Valid(value):
		return "it is no text"
	case bytes.IndexFunc(value, isLost) >= 0:
		return "it has control characters, which a browser does not keep"
	}
	pairs, feeds := bytes.Count(value, []byte("\r\n")), bytes.Count(value, []byte("\n"))
	returns := bytes.Count(value, []byte("\r"))
	if returns != pairs || pairs != 0 && pairs != feeds {
		return "its lines end in different ways, which a browser does not keep"
	}
	return ""
}

// isLost reports whether a browser may change a character of a form.
func isLost(r rune) bool {
	return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' || r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef
}

// asSent is a text of a form with the line ends that the value before had.
func asSent(text string, before []byte) ([]byte, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if bytes.Contains(before, []byte("\r\n")) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if why := whyFixed([]byte(text)); why != "" {
		return nil, page.FormError("The new value cannot be written from a form: " + why + ". Nothing was changed. Write it " +
			"with: quorate put KEY < FILE")
	}
	return []byte(text), nil
}
