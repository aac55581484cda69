package cluster

import "testing"

// Ensure that a server has the name that is given, or that of its file, and users only if they are asked for.
func TestParseServer(t *testing.T) {
	for text, want := range map[string]Server{
		"a=/bin/quorate": {Name: "a", Path: "/bin/quorate"}, "/bin/quorate": {Name: "quorate", Path: "/bin/quorate"},
		"a=/bin/quorate,users=on":        {Name: "a", Path: "/bin/quorate", Users: true},
		"a=/bin/quorate,audit=on":        {Name: "a", Path: "/bin/quorate", Audit: true},
		"/bin/quorate,audit=on,users=on": {Name: "quorate", Path: "/bin/quorate", Users: true, Audit: true},
	} {
		if got, err := ParseServer(text); err != nil || got.Name != want.Name || got.Path != want.Path || got.Users != want.Users {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "a=", "=b", "a=b,users=off", "a=b,c"} {
		if got, err := ParseServer(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
