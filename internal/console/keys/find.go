package keys

import (
	"bytes"
	"context"

	"github.com/quorate/quorate/internal/console/page"
)

// crumb is a prefix above the one that is shown.
type crumb struct{ Name, Href string }

// mostCrumbs is how many prefixes above are shown: the first ones and the last ones.
const mostCrumbs = 12

// findView is the head of the tree.
type findView struct {
	Value   string // of the field
	Crumbs  []crumb
	Skipped bool // between the first and the second crumb some are left out
	Watch   string
	Deleted string
	Changes string
	Leases  string
	New     string
}

// find shows where the reader is, and the way to elsewhere. It asks the member nothing.
func find(_ context.Context, r *page.Request) (any, error) {
	prefix, err := prefixIn(r.Query)
	if err != nil {
		return findView{Leases: "/keys/leases", Value: r.Query.Get("prefix")}, nil // the list says what is wrong
	}
	v := findView{Leases: "/keys/leases", Watch: toPrefix("/keys/watch", prefix), Deleted: toPrefix("/keys/deleted", prefix),
		Changes: toPrefix("/keys/changes", prefix)}
	if r.Admin {
		v.New = toPrefix("/keys/new", prefix)
	}
	if len(prefix) > 0 {
		v.Value = cut(nameOf(prefix), mostLink)
	}
	v.Crumbs, v.Skipped = crumbsOf(prefix)
	return v, nil
}

// crumbsOf are the prefixes of a key that end with a separator, and the prefix itself.
func crumbsOf(prefix []byte) (list []crumb, skipped bool) {
	list = []crumb{{"all keys", "/keys"}}
	ends := endsOf(prefix, mostCrumbs)
	from := 0
	if len(ends) > 0 {
		from = bytes.LastIndexByte(prefix[:ends[0]-1], separator) + 1
	}
	skipped = from > 0
	for _, end := range ends {
		list = append(list, crumb{short(prefix[from:end]), toPrefix("/keys", prefix[:end])})
		from = end
	}
	if from < len(prefix) {
		list = append(list, crumb{Name: short(prefix[from:]) + "…"})
	}
	return list, skipped
}

// endsOf are the ends of the last parts of a prefix, each behind a separator.
func endsOf(prefix []byte, most int) (ends []int) {
	for at := len(prefix); len(ends) < most; {
		at = bytes.LastIndexByte(prefix[:at], separator)
		if at < 0 {
			break
		}
		ends = append(ends, at+1)
	}
	for i, j := 0, len(ends)-1; i < j; i, j = i+1, j-1 {
		ends[i], ends[j] = ends[j], ends[i]
	}
	return ends
}
