package lease_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
)

// table is an engine whose batches have one row each.
type table map[string]string

func (t table) Set(key, value []byte) { t[string(key)] = string(value) }
func (t table) DeleteRaw(key []byte)  { delete(t, string(key)) }

func (t table) Scan(lower, upper []byte, visit func(key []byte) bool) error {
	for _, key := range slices.Sorted(maps.Keys(t)) {
		if key >= string(lower) && key < string(upper) && !visit([]byte(key)) {
			break
		}
	}
	return nil
}

func (t table) Has(key []byte) (bool, error) {
	_, found := t[string(key)]
	return found, nil
}

func rows(t table) *lease.Rows { return &lease.Rows{Table: t, Reader: t, Prefix: []byte("p")} }

// visit returns the keys attached to a lease.
func visit(t *testing.T, from lease.Visitor, id kv.LeaseID) (keys []string) {
	t.Helper()
	if err := from.VisitKeys(id, func(key []byte) bool { keys = append(keys, string(key)); return true }); err != nil {
		t.Fatal(err)
	}
	return keys
}

// reopen loads the rows of a table into a new Lessor, in the order of an engine.
func reopen(t *testing.T, from table) *lease.Lessor {
	t.Helper()
	keys := make([]string, 0, len(from))
	for key := range from {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	l := lease.New()
	for _, key := range keys {
		if err := l.Load([]byte(key[1:]), []byte(from[key])); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// start is any moment; the tests move it by hand.
var start = time.Unix(1_000_000, 0)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func TestLessor_Grant_counts_from_the_first_reading_after(t *testing.T) {
	l := lease.New()
	l.Promote(at(0), 0)
	l.Grant(rows(table{}), 1, 10) // applied before any call passed a time
	if info, err := l.TimeToLive(1, at(5)); err != nil || info.Remaining != 10*time.Second {
		t.Fatalf("the first reading says %v, %v; want the full 10s", info, err)
	}
	if ids := l.Expired(at(14.9), 10, 1000); ids != nil {
		t.Fatalf("%v named before 15s", ids)
	}
	if ids := l.Expired(at(15), 10, 1000); !slices.Equal(ids, []kv.LeaseID{1}) {
		t.Fatalf("at 15s: %v, want lease 1", ids)
	}
}

func TestLessor_Renew_rules(t *testing.T) {
	l := lease.New()
	if _, err := l.Renew(1, at(0)); !errors.Is(err, lease.ErrNotPrimary) {
		t.Fatalf("at a follower: %v", err)
	}
	l.Promote(at(0), 0)
	if _, err := l.Renew(1, at(0)); !errors.Is(err, kv.ErrLeaseNotFound) {
		t.Fatalf("an unknown lease: %v", err)
	}
	l.Grant(rows(table{}), 1, 10)
	l.Grant(rows(table{}), 2, 10)
	l.Expired(at(0), 10, 1000)
	if ttl, err := l.Renew(1, at(9)); ttl != 10 || err != nil {
		t.Fatalf("in time: %d, %v", ttl, err)
	}
	if ids := l.Expired(at(12), 10, 1000); !slices.Equal(ids, []kv.LeaseID{2}) {
		t.Fatalf("at 12s: %v, want only the lease that was not renewed", ids)
	}
	if _, err := l.Renew(2, at(5)); !errors.Is(err, lease.ErrExpired) {
		t.Fatalf("named as due, then renewed by an older clock reading: %v", err)
	}
	if _, err := l.Renew(1, at(19)); !errors.Is(err, lease.ErrExpired) {
		t.Fatalf("past the deadline but not named yet: %v", err)
	}
	if ids := l.Expired(at(19), 10, 1000); !slices.Equal(ids, []kv.LeaseID{2, 1}) {
		t.Fatalf("at 19s: %v, want both, the one whose end did not come named again", ids)
	}
}

func TestLessor_Promote_restarts_in_full(t *testing.T) {
	l := lease.New()
	l.Grant(rows(table{}), 1, 10)
	l.Promote(at(0), 3*time.Second)
	if info, _ := l.TimeToLive(1, at(2)); info.Remaining != 11*time.Second || info.TTLSeconds != 10 {
		t.Fatalf("after 2s of 10+3: %+v", info)
	}
	l.Expired(at(20), 10, 1000)
	l.Demote()
	if ids := l.Expired(at(30), 10, 1000); ids != nil {
		t.Fatalf("a follower names %v", ids)
	}
	l.Promote(at(30), 0)
	if ids := l.Expired(at(39), 10, 1000); ids != nil {
		t.Fatalf("%v named 9s after the second election", ids)
	}
	if _, err := l.Renew(1, at(39)); err != nil {
		t.Fatalf("what an earlier leadership named is forgotten: %v", err)
	}
}

func TestLessor_Expired_limit_and_revoked(t *testing.T) {
	l, tab := lease.New(), table{}
	l.Promote(at(0), 0)
	for id := kv.LeaseID(1); id <= 5; id++ {
		l.Grant(rows(tab), id, int64(id))
	}
	l.Expired(at(0), 1, 1000)
	l.Revoke(rows(tab), 2)
	if ids := l.Expired(at(9), 2, 1000); !slices.Equal(ids, []kv.LeaseID{1, 3}) {
		t.Fatalf("%v, want the two longest overdue that still exist", ids)
	}
	if ids := l.Expired(at(9), 9, 1000); !slices.Equal(ids, []kv.LeaseID{4, 5}) {
		t.Fatalf("%v, want the rest", ids)
	}
	if ids := l.Expired(at(12), 9, 1000); len(ids) != 4 {
		t.Fatalf("%v, want all that were named and are still there named again", ids)
	}
	for _, id := range []kv.LeaseID{1, 3, 4, 5} {
		l.Revoke(rows(tab), id)
	}
	if ids := l.Expired(at(99), 9, 1000); ids != nil || l.Len() != 0 || len(tab) != 0 {
		t.Fatalf("all revoked, yet %v, %d leases, %d rows", ids, l.Len(), len(tab))
	}
}

func TestLessor_Revoke_then_grant_of_the_same_id(t *testing.T) {
	l, tab := lease.New(), table{}
	l.Promote(at(0), 0)
	l.Grant(rows(tab), 7, 5)
	l.Revoke(rows(tab), 7) // before any call passed a time
	l.Grant(rows(tab), 7, 50)
	if ids := l.Expired(at(49), 9, 1000); ids != nil {
		t.Fatalf("the second lease of that id is named at 49s: %v", ids)
	}
	if got := l.Leases(at(49)); len(got) != 1 || got[0].TTLSeconds != 50 {
		t.Fatalf("%+v, want the second one alone", got)
	}
	if ids := l.Expired(at(99), 9, 1000); !slices.Equal(ids, []kv.LeaseID{7}) {
		t.Fatalf("%v, want lease 7 once", ids)
	}
}

func TestLessor_Leases_order(t *testing.T) {
	l := lease.New()
	for _, id := range []kv.LeaseID{9, -3, 4} {
		l.Grant(rows(table{}), id, 100)
	}
	ids := func() (out []kv.LeaseID) {
		for _, info := range l.Leases(at(10)) {
			out = append(out, info.ID)
		}
		return out
	}
	if got := ids(); !slices.Equal(got, []kv.LeaseID{-3, 4, 9}) {
		t.Fatalf("at a follower %v, want by id", got)
	}
	l.Promote(at(0), 0)
	l.Renew(-3, at(5))
	if got := ids(); !slices.Equal(got, []kv.LeaseID{4, 9, -3}) {
		t.Fatalf("at the leader %v, want the renewed one last", got)
	}
}

// Ensure that keys are those of a list in memory, through batches and restarts between them, and that the ends of leases and
// the numbers of keys agree with them.
func TestRows_againstList(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	l, tab, batch := lease.New(), table{}, &pendingBatch{}
	r := &lease.Rows{Reader: tab, Prefix: []byte("p")}
	r.Begin(batch)
	hangs := map[string]kv.LeaseID{}
	on := func(id kv.LeaseID) (keys []string) {
		for _, key := range slices.Sorted(maps.Keys(hangs)) {
			if hangs[key] == id {
				keys = append(keys, key)
			}
		}
		return keys
	}
	for step := range 6000 {
		id := kv.LeaseID(rng.Intn(9) - 4)
		key := fmt.Sprintf("k%d", rng.Intn(30))
		old, hung := hangs[key]
		switch what := rng.Intn(20); {
		case what == 0:
			batch.commit(tab)
			r.Begin(batch)
			if rng.Intn(10) == 0 {
				l = reopen(t, tab)
			}
			committed := &lease.Committed{Reader: tab, Prefix: []byte("p")}
			if got := visit(t, committed, id); !slices.Equal(got, on(id)) {
				t.Fatalf("step %d, lease %d: %v are committed, want %v", step, id, got, on(id))
			}
		case !l.Exists(id):
			l.Grant(r, id, int64(rng.Intn(100)-3))
		case what == 1:
			for _, key := range visit(t, r, id) {
				l.Drop(r, id, []byte(key))
				delete(hangs, key)
			}
			l.Revoke(r, id)
		case hung && (what < 8 || old == id):
			delete(hangs, key)
			if err := l.Detach(r, old, []byte(key)); err != nil {
				t.Fatal(err)
			}
		case hung:
			if err := l.Detach(r, id, []byte(key)); err != nil { // it is attached to another lease
				t.Fatal(err)
			}
		default:
			l.Attach(r, id, []byte(key))
			hangs[key] = id
		}
		want := on(id)
		if got := visit(t, r, id); !slices.Equal(got, want) {
			t.Fatalf("step %d, lease %d: got %v, want %v", step, id, got, want)
		}
		if n, _ := l.KeysSize(id); n != len(want) {
			t.Fatalf("step %d, lease %d: %d keys counted, want %d", step, id, n, len(want))
		}
	}
	batch.commit(tab)
	if got, want := reopen(t, tab).Leases(at(0)), l.Leases(at(0)); !slices.Equal(got, want) {
		t.Fatalf("loaded %v, want %v", got, want)
	}
}

// pendingBatch is an engine batch: its rows cannot be read before it is committed.
type pendingBatch []func(table)

func (b *pendingBatch) Set(key, value []byte) {
	k, v := string(key), string(value)
	*b = append(*b, func(t table) { t[k] = v })
}

func (b *pendingBatch) DeleteRaw(key []byte) {
	k := string(key)
	*b = append(*b, func(t table) { delete(t, k) })
}

func (b *pendingBatch) commit(to table) {
	for _, write := range *b {
		write(to)
	}
	*b = nil
}

// A client counts from the answer to its grant or renewal; no lease may be named before the client's own count ends, through
// renewals, elections and calls that come late.
func TestLessor_Expired_never_early(t *testing.T) {
	for seed := int64(1); seed <= 40; seed++ {
		rng := rand.New(rand.NewSource(seed))
		l, tab := lease.New(), table{}
		now, floor := at(0), map[kv.LeaseID]time.Time{}
		l.Promote(now, 0)
		for step := 0; step < 2000; step++ {
			now = now.Add(time.Duration(rng.Intn(1500)) * time.Millisecond)
			id := kv.LeaseID(rng.Intn(20) + 1)
			switch rng.Intn(6) {
			case 0:
				if !l.Exists(id) {
					ttl := int64(rng.Intn(20))
					l.Grant(rows(tab), id, ttl)
					floor[id] = now.Add(time.Duration(ttl) * time.Second)
				}
			case 1, 2:
				if ttl, err := l.Renew(id, now); err == nil {
					floor[id] = now.Add(time.Duration(ttl) * time.Second)
				}
			case 3:
				if rng.Intn(20) == 0 {
					l = reopen(t, tab) // another member leads; it extends by more than the gap
					l.Promote(now, time.Second)
				}
			default:
				for _, id := range l.Expired(now, rng.Intn(5), 1000) {
					if now.Before(floor[id]) {
						t.Fatalf("seed %d step %d: lease %d named %v early", seed, step, id, floor[id].Sub(now))
					}
					if rng.Intn(2) == 0 {
						l.Revoke(rows(tab), id)
					}
				}
			}
		}
	}
}

func BenchmarkLessor(b *testing.B) {
	const leases = 100_000
	l, tab := lease.New(), table{}
	r := rows(tab)
	for id := kv.LeaseID(1); id <= leases; id++ {
		l.Grant(r, id, 60)
	}
	b.Run("promote 100k", func(b *testing.B) {
		for b.Loop() {
			l.Promote(at(0), 0)
		}
	})
	b.Run("renew", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := l.Renew(kv.LeaseID(i%leases+1), at(1)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("expired, none due", func(b *testing.B) {
		for b.Loop() {
			l.Expired(at(2), 1000, 1000)
		}
	})
}

func ExampleLessor() {
	l := lease.New()
	batch := &lease.Rows{Table: table{}, Prefix: []byte("p")}
	l.Grant(batch, 7, 10)
	l.Attach(batch, 7, []byte("lock"))
	l.Promote(at(0), 0)
	l.Renew(7, at(6))
	fmt.Println(l.Expired(at(15), 10, 1000), l.Expired(at(16), 10, 1000))
	_, err := l.Renew(7, at(16))
	fmt.Println(err)
	// Output:
	// [] [7]
	// lease: expired, its end is on the way
}
