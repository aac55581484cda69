package level

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// maxRelease is the longest text that names a release, in bytes.
const maxRelease = 64

// Release is a release of this server by its first two numbers, such as 1.0. The zero value is none.
type Release struct{ Major, Minor uint32 }

// ParseRelease is a part of the state machine (package kv/apply ends downgrades by it): which texts it takes, and for which
// release, must never change. It reads the release of a version or a build: 1.0, 1.0.0 and 1.0.0-dev+20261124.3f1448cbc1f2 are
// 1.0. It reports false for a text of another form, or one of more than 64 bytes.
func ParseRelease(text string) (r Release, ok bool) {
	if len(text) > maxRelease {
		return Release{}, false
	}
	numbers, _, _ := strings.Cut(text, "+")
	numbers, _, _ = strings.Cut(numbers, "-")
	parts := strings.Split(numbers, ".")
	if len(parts) != 2 && len(parts) != 3 {
		return Release{}, false
	}
	var read [3]uint32
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return Release{}, false
		}
		read[i] = uint32(n)
	}
	return Release{read[0], read[1]}, true
}

// Compare returns a negative number if r is before o, zero if both are the same, else a positive one.
func (r Release) Compare(o Release) int {
	return cmp.Or(cmp.Compare(r.Major, o.Major), cmp.Compare(r.Minor, o.Minor))
}

func (r Release) String() string { return fmt.Sprintf("%d.%d", r.Major, r.Minor) }

// IsZero reports whether r is none.
func (r Release) IsZero() bool { return r == Release{} }

// Knows returns the highest level that a release knows, as far as this build knows levels; false: it is before the first
// release.
func (r Release) Knows() (l Level, ok bool) {
	for i := range table {
		if since, _ := ParseRelease(table[i].Since); since.Compare(r) <= 0 {
			l, ok = table[i].Level, true
		}
	}
	return l, ok
}
