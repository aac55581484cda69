package cluster

import (
	"slices"
	"testing"
)

// Ensure that a server has the name that is given, or that of its file, and users only if they are asked for.
func TestParseServer(t *testing.T) {
	for text, want := range map[string]Server{
		"a=/bin/quorate": {Name: "a", Path: "/bin/quorate"}, "/bin/quorate": {Name: "quorate", Path: "/bin/quorate"},
		"a=/bin/quorate,users=on":        {Name: "a", Path: "/bin/quorate", Users: true},
		"a=/bin/quorate,audit=on":        {Name: "a", Path: "/bin/quorate", Features: []string{"audit"}},
		"a=/q,limit=on,backup=on":        {Name: "a", Path: "/q", Features: []string{"backup", "limit"}},
		"/bin/quorate,audit=on,users=on": {Name: "quorate", Path: "/bin/quorate", Users: true, Features: []string{"audit"}},
	} {
		if got, err := ParseServer(text); err != nil || got.Name != want.Name || got.Path != want.Path || got.Users != want.Users ||
			!slices.Equal(got.Features, want.Features) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "a=", "=b", "a=b,users=off", "a=b,c", "a=b,audit=off", "a=b,audit=on,audit=on", "a=b,others=on"} {
		if got, err := ParseServer(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
