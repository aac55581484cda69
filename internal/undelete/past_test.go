package undelete_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/undelete"
	"github.com/quorate/quorate/internal/undelete/undeletetest"
)

// past is a former state in memory, in pages of so many keys.
type past struct {
	versions []undelete.Version // in the order of keys
	page     int
	failed   error
}

func (p *past) Page(_ context.Context, key, end []byte, limit int) (page []undelete.Version, more bool, err error) {
	if p.failed != nil {
		return nil, false, p.failed
	}
	for _, v := range p.versions {
		inside := bytes.Equal(v.Key, key)
		if len(end) > 0 {
			inside = bytes.Compare(v.Key, key) >= 0 && (bytes.Equal(end, []byte{0}) || bytes.Compare(v.Key, end) < 0)
		}
		switch {
		case inside && len(page) == min(limit, p.page):
			return page, true, nil
		case inside:
			page = append(page, v)
		}
	}
	return page, false, nil
}

func was(key, value string, mod, lease int64) undelete.Version {
	return undelete.Version{Key: []byte(key), Value: []byte(value), ModRevision: mod, Lease: lease}
}

// Ensure that a plan of a former state has the keys that the cluster has not, whatever its history has forgotten, and leaves
// alone those that exist.
func TestCluster_PlanFrom(t *testing.T) {
	m := undeletetest.Start(t)
	m.Set("a/3", "old", 0)   // 2
	m.Set("a/4", "other", 0) // 3
	m.Set("c", "x", 0)       // 4
	m.Forget(4)
	c := of(t, m)
	state := &past{versions: []undelete.Version{was("a/1", "one", 2, 0), was("a/2", "two", 3, 77), was("a/3", "old", 4, 0),
		was("a/4", "old", 5, 0), was("b", "b", 6, 0)}}
	for _, row := range []struct {
		r    undelete.Request
		want string
		more string
	}{
		{prefixed("a/"), "a/1@0 a/2@0 a/3!2true a/4!3false", ""},
		{undelete.Request{Key: []byte("a/2"), Leased: true}, "a/2@0", ""},
		{undelete.Request{Key: []byte("a/9"), Leased: true}, "", ""},
		{undelete.Request{Key: []byte{0}, End: []byte{0}, Limit: 1, Leased: true}, "a/1@0", "a/2"},
		{undelete.Request{Key: []byte{0}, End: []byte{0}, Limit: 2, Leased: true}, "a/1@0 a/2@0 a/3!2true a/4!3false", "b"},
		{undelete.Request{Key: []byte{0}, End: []byte{0}, From: []byte("a/3"), Leased: true}, "b@0 a/3!2true a/4!3false", ""},
		{undelete.Request{Key: []byte("a"), End: []byte("b"), From: []byte("b")}, "", ""},
		{undelete.Request{Key: []byte{0}, End: []byte{0}}, "a/1@0 b@0 a/3!2true a/4!3false", ""},
	} {
		for _, state.page = range []int{1, 2, 7} {
			for _, m.MaxOps = range []int{1, 3, 128} {
				p, err := c.PlanFrom(t.Context(), state, row.r, nil)
				if err != nil || text(p) != row.want || string(p.More) != row.more {
					t.Errorf("%+v: got %s, and more from %q, %v; want %s and %q", row.r, text(p), p.More, err, row.want, row.more)
				}
			}
		}
	}
	p, err := c.PlanFrom(t.Context(), state, prefixed("a/"), nil)
	if err != nil || p.Revision != 4 || p.First != 4 || p.Bytes != 3+3+3+3 || p.Leased != 1 || p.LeftOut != 0 || p.Kept.Same != 1 || p.Kept.Other != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	r := prefixed("")
	r.Leased = false
	if p, err := c.PlanFrom(t.Context(), state, r, nil); err != nil || p.LeftOut != 1 || p.Leased != 0 {
		t.Errorf("without keys that had a lease: %+v, %v", p, err)
	}
	state.failed = errors.New("a damaged block")
	if _, err := c.PlanFrom(t.Context(), state, prefixed("a/"), nil); !errors.Is(err, state.failed) {
		t.Errorf("got %v", err)
	}
}

// Ensure that such a plan is applied with the values of the former state, that what came meanwhile is left alone, also if its
// value fits into no request, and that a second time changes nothing.
func TestCluster_Apply_past(t *testing.T) {
	m := undeletetest.Start(t)
	state := &past{page: 60}
	for i := range 250 {
		state.versions = append(state.versions, was(fmt.Sprintf("k%03d", i), fmt.Sprint("value ", i), int64(i+2), 0))
	}
	large := strings.Repeat("v", m.MaxBytes+1)
	state.versions = append(state.versions, was("l1", large, 300, 0), was("l2", large, 301, 0))
	m.Set("l2", "small", 0)
	c := of(t, m)
	all := prefixed("")
	p, err := c.PlanFrom(t.Context(), state, all, nil)
	if err != nil || len(p.Items) != 251 || p.Kept.Other != 1 {
		t.Fatalf("%d items, %+v, %v", len(p.Items), p.Kept, err)
	}
	m.Set("k007", "value 7", 0)
	m.Set("k008", "new", 0)
	r, err := c.Apply(t.Context(), p, nil)
	if err != nil || r.Restored != 248 || r.Came.Same != 1 || r.Came.Other != 1 || len(r.TooLarge) != 1 || len(r.Gone) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i := range 250 {
		want := fmt.Sprint("value ", i)
		if i == 8 {
			want = "new"
		}
		if value, lease, exists := m.Value(fmt.Sprintf("k%03d", i)); value != want || lease != 0 || !exists {
			t.Fatalf("k%03d: %q %d %t", i, value, lease, exists)
		}
	}
	p, err = c.PlanFrom(t.Context(), state, all, nil)
	if err != nil || len(p.Items) != 1 || p.Kept.Same != 249 || p.Kept.Other != 2 {
		t.Errorf("again: %d items, %+v, %v", len(p.Items), p.Kept, err)
	}
	changed := &past{page: 60, versions: slices.Clone(state.versions)}
	changed.versions = append(changed.versions, was("m", "1", 400, 0))
	p, err = c.PlanFrom(t.Context(), changed, prefixed("m"), nil)
	if err != nil {
		t.Fatal(err)
	}
	changed.versions[len(changed.versions)-1].ModRevision = 401
	if r, err := c.Apply(t.Context(), p, nil); err == nil || r.Restored != 0 {
		t.Errorf("a version that the plan does not name was written: %+v, %v", r, err)
	}
}
