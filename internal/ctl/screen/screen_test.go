package screen_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/ctl/screen"
)

// Ensure that a block takes the place of the one before, also below lines that stay, and that nothing wraps.
func TestScreen_Draw(t *testing.T) {
	var out strings.Builder
	s := screen.Screen{Out: &out, Width: func() int { return 5 }}
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"the first block", func() { s.Draw([]string{"a", "b"}) }, "a\x1b[K\nb\x1b[K\n\x1b[J"},
		{"a shorter one in its place", func() { s.Draw([]string{"c"}) }, "\x1b[2Ac\x1b[K\n\x1b[J"},
		{"a line above it", func() { s.Say("%s did", "m1") }, "\x1b[1A\x1b[Jm1 did\nc\x1b[K\n\x1b[J"},
		{"a line too long", func() { s.Draw([]string{"█░█░█░"}) }, "\x1b[1A█░█░█\x1b[K\n\x1b[J"},
		{"no block any more", s.Erase, "\x1b[1A\x1b[J"},
		{"nothing to erase", s.Erase, ""},
	} {
		out.Reset()
		if step.do(); out.String() != step.want {
			t.Errorf("%s: got %q, want %q", step.name, out.String(), step.want)
		}
	}
}
