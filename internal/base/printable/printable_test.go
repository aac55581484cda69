package printable_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/printable"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"a member, größer als 8 GiB 日本", "a member, größer als 8 GiB 日本"},
		{"\x1b[2Jgone\r\nnext\x07", "[2Jgonenext"},
		{"one\u009b31mred", "one31mred"},     // the same begin of a sequence, in one character
		{"safe\u202egpj.exe", "safegpj.exe"}, // the order of what follows is turned
		{"cut\xff\xfe", "cut"},
		{"zero\u200bwidth", "zerowidth"},
	} {
		if got := printable.Text(c.text, 100); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
	if got := printable.Text(strings.Repeat("ä", 1<<20), 3); got != "äää..." {
		t.Errorf("a long text: %q", got)
	}
	if got := printable.Text("äää\n", 3); got != "äää" {
		t.Errorf("a text of just as many: %q", got)
	}
	for _, text := range []string{"", "a", strings.Repeat("a", 600), strings.Repeat("日本", 300), "\xff", strings.Repeat("ä", 256)} {
		if got := printable.Within(text, 512); len(got) > 512 || len(got) < min(len(text)-1, 440) {
			t.Errorf("%.20q: %d of %d bytes", text, len(got), len(text))
		}
	}
	if got := printable.Within("one\x1b\ntwo\n", 100); got != "one; two" {
		t.Errorf("within: %q", got)
	}
	if got := printable.Lines("one\x1b[2J\n\rtwo\n", 100); got != "one[2J\ntwo\n" {
		t.Errorf("lines: %q", got)
	}
}
