package undelete_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/undelete"
	"github.com/quorate/quorate/internal/undelete/undeletetest"
)

func of(t *testing.T, m *undeletetest.Member) *undelete.Cluster {
	return &undelete.Cluster{Conn: m.Conn(t), Timeout: 5 * time.Second, Patience: 10 * time.Second}
}

// prefixed asks for the keys that begin with a prefix.
func prefixed(prefix string) (r undelete.Request) {
	r.Key, r.End = undelete.Prefix([]byte(prefix))
	r.Leased = true
	return r
}

func plan(t *testing.T, c *undelete.Cluster, r undelete.Request) *undelete.Plan {
	t.Helper()
	p, err := c.Plan(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// text writes the keys of a plan.
func text(p *undelete.Plan) string {
	var words []string
	for _, one := range p.Items {
		words = append(words, fmt.Sprintf("%s@%d", one.Key, one.Read))
	}
	for _, one := range p.Kept.Listed {
		words = append(words, fmt.Sprintf("%s!%d%v", one.Key, one.ModRevision, one.Same))
	}
	return strings.Join(words, " ")
}

// Ensure that a plan has what deletions took, or a revision had, and says of keys that exist whether they differ.
func TestCluster_Plan(t *testing.T) {
	m := undeletetest.Start(t)
	for _, key := range []string{"a/1", "a/2", "a/3", "a/4", "b"} { // 2 to 6
		m.Set(key, "old", 0)
	}
	m.Set("a/2", "new", 77)          // 7
	m.Drop("a/1", "a/2", "a/3", "b") // 8
	m.Set("a/3", "old", 0)           // 9
	m.Set("a/4", "other", 0)         // 10
	c := of(t, m)
	for _, row := range []struct {
		r    undelete.Request
		want string
		more string
	}{
		{prefixed("a/"), "a/1@7 a/2@7 a/3!9true", ""},
		{prefixed(""), "a/1@7 a/2@7 b@7 a/3!9true", ""},
		{undelete.Request{Key: []byte("a/2")}, "a/2@7", ""},
		{undelete.Request{Key: []byte("a/4")}, "", ""},
		{undelete.Request{Key: []byte("a/"), End: []byte("a0"), At: 6}, "a/1@6 a/2@6 a/3!9true a/4!10false", ""},
		{undelete.Request{Key: []byte{0}, End: []byte{0}, Limit: 1}, "a/1@7", "a/2"},
		{undelete.Request{Key: []byte{0}, End: []byte{0}, Limit: 2}, "a/1@7 a/2@7 a/3!9true", "b"},
		{undelete.Request{Key: []byte{0}, End: []byte{0}, Limit: 3}, "a/1@7 a/2@7 b@7 a/3!9true", ""},
		{undelete.Request{Key: []byte{0}, End: []byte{0}, From: []byte("a/3")}, "b@7 a/3!9true", ""},
		{undelete.Request{Key: []byte("a"), End: []byte("b"), From: []byte("b")}, "", ""},
		{undelete.Request{Key: []byte("a"), From: []byte("b")}, "", ""},
	} {
		row.r.Leased = true
		for _, m.PageKeys = range []int{1, 2, 7} {
			if p := plan(t, c, row.r); text(p) != row.want || string(p.More) != row.more {
				t.Errorf("%+v: got %s, and more from %q; want %s and %q", row.r, text(p), p.More, row.want, row.more)
			}
		}
	}
	p := plan(t, c, prefixed("a/"))
	if p.Revision != 10 || p.First != 1 || p.Bytes != 2*(3+3) || p.Leased != 1 || p.Items[1].Lease != 77 || p.Items[0].Deleted != 8 ||
		p.Kept.Same != 1 || p.Kept.Other != 0 {
		t.Errorf("%+v", p)
	}
	r := prefixed("a/")
	r.Leased = false
	if p := plan(t, c, r); text(p) != "a/1@7 a/3!9true" || p.LeftOut != 1 || p.Leased != 0 {
		t.Errorf("without keys that had a lease: got %s, %d are left out", text(p), p.LeftOut)
	}
	m.Forget(7)
	for at, want := range map[int64]string{6: "revision 6 is compacted: the history is kept since revision 7",
		11: "revision 11 is in the future: the store is at revision 10"} {
		refused := (*undelete.RevisionError)(nil)
		if _, err := c.Plan(t.Context(), undelete.Request{Key: []byte("a"), At: at}, nil); !errors.As(err, &refused) || err.Error() != want {
			t.Errorf("at %d: %v", at, err)
		}
	}
}

func TestPrefix(t *testing.T) {
	for prefix, want := range map[string]string{"": "\x00 \x00", "a": "a b", "a\xff": "a\xff b", "\xff": "\xff \x00", "/x/": "/x/ /x0"} {
		if key, end := undelete.Prefix([]byte(prefix)); string(key)+" "+string(end) != want {
			t.Errorf("%q: %q to %q", prefix, key, end)
		}
	}
}

// Ensure that keys get the values that the plan names, without leases, that what came meanwhile is left alone, and that a second
// time changes nothing.
func TestCluster_Apply(t *testing.T) {
	m := undeletetest.Start(t)
	const keys = 250
	var names []string
	for i := range keys {
		names = append(names, fmt.Sprintf("k%03d", i))
		m.Set(names[i], fmt.Sprint("value ", i), int64(i%2))
	}
	m.Drop(names...)
	c := of(t, m)
	p := plan(t, c, prefixed("k"))
	m.Set("k007", "value 7", 0)
	m.Set("k100", "a client's", 9)
	m.Set("k101", "later", 0)
	m.Drop("k101") // what the plan says is written, not what was deleted since
	steps := 0
	result, err := c.Apply(t.Context(), p, func(r *undelete.Result) { steps++ })
	if err != nil || result.Restored != keys-2 || result.Came.Same != 1 || result.Came.Other != 1 || result.Settled() != keys || steps < 3 {
		t.Errorf("%+v, %v in %d steps", result, err, steps)
	}
	for i, name := range names {
		want := fmt.Sprint("value ", i)
		if i == 100 {
			want = "a client's"
		}
		if value, lease, exists := m.Value(name); !exists || value != want || lease != 0 && i != 100 {
			t.Errorf("%s is %q with lease %d", name, value, lease)
		}
	}
	for _, r := range m.Txns {
		if len(r.Success) > 100 {
			t.Errorf("a transaction of %d operations", len(r.Success))
		}
	}
	again, err := c.Apply(t.Context(), p, nil)
	if err != nil || again.Restored != 0 || again.Came.Same != keys-1 || again.Revision != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if p := plan(t, c, prefixed("k")); len(p.Items) != 0 || p.Kept.Same != keys-2 || p.Kept.Other != 2 {
		t.Errorf("nothing is gone, and it plans %d keys, and keeps %+v", len(p.Items), p.Kept)
	}
}

// Ensure that requests fit into the bounds of the server: operations, bytes, and one value that is too large alone.
func TestCluster_Apply_bounds(t *testing.T) {
	m := undeletetest.Start(t)
	m.MaxOps, m.MaxBytes = 10, 300<<10
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("k%02d", i))
		size := 10
		if i%10 == 3 {
			size = 250 << 10
		}
		if i == 42 {
			size = 400 << 10
		}
		m.Set(names[i], strings.Repeat("v", size), 0)
	}
	m.Drop(names...)
	c := of(t, m)
	result, err := c.Apply(t.Context(), plan(t, c, prefixed("k")), nil)
	if err != nil || result.Restored != 59 || len(result.TooLarge) != 1 || string(result.TooLarge[0].Key) != "k42" {
		t.Errorf("%+v, %v", result, err)
	}
}

// Ensure that keys whose versions are compacted between plan and reading are told, and the others restored.
func TestCluster_Apply_compacted(t *testing.T) {
	m := undeletetest.Start(t)
	for i := range 10 { // k0 is deleted at 3, k9 at 21
		key := fmt.Sprint("k", i)
		m.Set(key, "v", 0)
		m.Drop(key)
	}
	c := of(t, m)
	p := plan(t, c, prefixed("k"))
	m.Forget(10)
	result, err := c.Apply(t.Context(), p, nil)
	if err != nil || result.Restored != 6 || len(result.Gone) != 4 || string(result.Gone[3].Key) != "k3" {
		t.Errorf("%+v, %v", result, err)
	}
}

// Ensure that a transaction whose answer was lost is made again, and that what it wrote counts as restored, once.
func TestCluster_Apply_lostAnswers(t *testing.T) {
	m := undeletetest.Start(t)
	m.Set("a", "1", 0)
	m.Set("b", "2", 0)
	m.Drop("a", "b")
	c := of(t, m)
	p := plan(t, c, prefixed(""))
	lost := 0
	m.After = func(r *pb.TxnRequest) error {
		if lost++; lost%2 == 1 {
			return status.Error(codes.Unavailable, "the member was killed")
		}
		return nil
	}
	result, err := c.Apply(t.Context(), p, nil)
	if err != nil || result.Restored != 2 || result.Settled() != 2 || result.Revision != 5 {
		t.Errorf("%+v, %v", result, err)
	}
	c.Patience = time.Millisecond
	m.Before = func(*pb.TxnRequest) error { return status.Error(codes.Unavailable, "no leader") }
	m.Drop("a", "b")
	if result, err = c.Apply(t.Context(), plan(t, c, prefixed("")), nil); status.Code(err) != codes.Unavailable || result.Settled() != 0 {
		t.Errorf("without a leader: %+v, %v", result, err)
	}
}

// Ensure that a key which a client makes while a write gets no answer does not count as restored: it has a lease, and so it is
// not what was written.
func TestCluster_Apply_leasedMeanwhile(t *testing.T) {
	m := undeletetest.Start(t)
	m.Set("a", "1", 0)
	m.Drop("a")
	c := of(t, m)
	p := plan(t, c, prefixed(""))
	failed := false
	m.Before = func(r *pb.TxnRequest) error {
		if failed || len(r.Compare) == 0 {
			return nil
		}
		failed = true
		m.Set("a", "1", 7)
		return status.Error(codes.Unavailable, "the member was killed")
	}
	result, err := c.Apply(t.Context(), p, nil)
	if err != nil || !failed || result.Restored != 0 || result.Came.Same != 1 || result.Revision != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

// Ensure that a refusal ends the work with what was done until then, and is not repeated.
func TestCluster_Apply_refused(t *testing.T) {
	m := undeletetest.Start(t)
	var names []string
	for i := range 150 {
		names = append(names, fmt.Sprintf("k%03d", i))
		m.Set(names[i], "v", 0)
	}
	m.Drop(names...)
	c, calls := of(t, m), 0
	p := plan(t, c, prefixed(""))
	m.Before = func(*pb.TxnRequest) error {
		if calls++; calls > 3 { // reads and writes take turns
			return rpctypes.ErrGRPCNoSpace
		}
		return nil
	}
	result, err := c.Apply(t.Context(), p, nil)
	if !errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) || result.Restored != 100 || calls != 4 {
		t.Errorf("%+v, %v after %d calls", result, err, calls)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if result, err := c.Apply(ended, p, nil); err == nil || result.Settled() != 0 {
		t.Errorf("after its end: %+v, %v", result, err)
	}
}

// Ensure that of two that restore the same keys at once each key is written once, and that they agree on it.
func TestCluster_Apply_atOnce(t *testing.T) {
	m := undeletetest.Start(t)
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf("k%03d", i))
		m.Set(names[i], "v", 0)
	}
	deleted := m.Drop(names...)
	results := make([]*undelete.Result, 4)
	var all sync.WaitGroup
	c := of(t, m)
	plans := make([]*undelete.Plan, len(results))
	for i := range plans {
		plans[i] = plan(t, c, prefixed(""))
		slices.Reverse(plans[i].Items[:len(names)/(i+1)])
	}
	for i, p := range plans {
		all.Go(func() {
			var err error
			if results[i], err = c.Apply(t.Context(), p, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	restored := 0
	for _, r := range results {
		restored += r.Restored
		if r.Settled() != len(names) || r.Came.Other > 0 {
			t.Errorf("%d restored, %d have an outcome, %d another value", r.Restored, r.Settled(), r.Came.Other)
		}
	}
	if restored != len(names) {
		t.Errorf("%d keys were restored as %d, after revision %d", len(names), restored, deleted)
	}
}
