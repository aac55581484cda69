package lease

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

type noTable struct{}

func (noTable) Set(_, _ []byte)  {}
func (noTable) DeleteRaw([]byte) {}

var moment = time.Unix(1_000_000, 0)

// Ensure that the heap keeps no items of leases which are revoked long before their time, and that the others still end in
// order.
func TestLessor_Revoke_leavesNothingInHeap(t *testing.T) {
	l, rows := New(), &Rows{Table: noTable{}}
	l.Promote(moment, 0)
	const kept = 10
	for id := kv.LeaseID(1); id <= kept; id++ {
		l.Grant(rows, id, int64(100-id))
	}
	for id := kv.LeaseID(1000); id < 11_000; id++ {
		l.Grant(rows, id, 1<<30)
		l.Expired(moment, 0, 1000) // passes the time, so that the countdown begins
		l.Revoke(rows, id)
	}
	if l.due.length() != kept || l.all.length() != kept || l.fresh.length() != 0 {
		t.Errorf("%d items, %d leases, %d fresh for %d leases", l.due.length(), l.all.length(), l.fresh.length(), kept)
	}
	ended := l.Expired(moment.Add(100*time.Second), 100, 1000)
	if len(ended) != kept {
		t.Fatalf("%d leases ended, want %d", len(ended), kept)
	}
	for i, id := range ended {
		if want := kept - kv.LeaseID(i); id != want {
			t.Errorf("lease %d ended at place %d, want %d", id, i, want)
		}
	}
}

// Every operation that may visit very many leases releases the lock after leasesPerHold of them, so that applying waits no
// longer than that.
func TestLessor_holdsAreShort(t *testing.T) {
	const leases = 20_000
	l, rows := New(), &Rows{Table: noTable{}}
	for id := kv.LeaseID(1); id <= leases; id++ {
		l.Grant(rows, id, 60)
	}
	for name, step := range map[string]func() int{
		"Promote": func() int { l.Promote(moment, time.Second); return leases },
		"Leases":  func() int { return len(l.Leases(moment)) },
		"Demote":  func() int { l.Demote(); l.Promote(moment, 0); return leases },
		"Expired": func() int { l.Promote(moment, 0); l.Expired(moment, 100, 1000); return l.due.length() },
		"Expired, all renewed": func() int {
			l.Promote(moment, 0)
			for id := kv.LeaseID(1); id <= leases; id++ {
				if _, err := l.Renew(id, moment.Add(50*time.Second)); err != nil {
					t.Fatal(err)
				}
			}
			return leases + len(l.Expired(moment.Add(105*time.Second), leases, 1000))
		},
	} {
		l.longest = 0
		if got := step(); got != leases {
			t.Errorf("%s: %d leases, want %d", name, got, leases)
		}
		if l.longest > leasesPerHold {
			t.Errorf("%s looks at %d leases in one hold, at most %d are allowed", name, l.longest, leasesPerHold)
		}
	}
}

// A new leader restarts all leases at once. Where more would end in one second than it may revoke in one, some end later, none
// earlier.
func TestLessor_Promote_spreadsPiledUpExpiries(t *testing.T) {
	l, rows := New(), &Rows{Table: noTable{}}
	ttls := map[kv.LeaseID]int64{}
	for id := kv.LeaseID(1); id <= 5_000; id++ {
		ttls[id] = 60 + int64(id%3)
		l.Grant(rows, id, ttls[id])
	}
	l.Grant(rows, 9_999, 10)
	l.Promote(moment, time.Second)
	if ids := l.Expired(moment.Add(11*time.Second), 10, 1000); len(ids) != 1 || ids[0] != 9_999 {
		t.Fatalf("%v, want the lease of 10 s alone", ids)
	}
	total := 0
	for second := int64(60); second < 80; second++ {
		ids := l.Expired(moment.Add(time.Duration(second+1)*time.Second), 10_000, 1000)
		for _, id := range ids {
			if id != 9_999 && ttls[id] > second {
				t.Fatalf("lease %d of %d s is named %d s after the restart", id, ttls[id], second)
			}
			l.Revoke(rows, id)
		}
		if len(ids) > restartsPerSecond+1 {
			t.Fatalf("second %d: %d leases end, at most %d may", second, len(ids), restartsPerSecond)
		}
		total += len(ids)
	}
	if total != 5_001 {
		t.Fatalf("%d leases ended in 20 s, want all 5001", total)
	}
}

// A walk that releases the lock misses no lease that exists throughout, whichever others are granted and revoked meanwhile.
func TestLessor_walk_missesNothingThatStays(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	l, rows := New(), &Rows{Table: noTable{}}
	const stay = 4 * leasesPerHold
	for id := kv.LeaseID(1); id <= 2*stay; id++ { // the odd ones stay
		l.Grant(rows, id, 60)
	}
	next, seen := kv.LeaseID(2*stay+2), map[kv.LeaseID]bool{}
	others := func() int { // run between two holds
		l.mu.Unlock()
		defer l.mu.Lock()
		for range 100 {
			if id := kv.LeaseID(2 * (1 + rng.Intn(stay))); l.Exists(id) {
				l.Revoke(rows, id)
			}
			l.Grant(rows, next, 60)
			next += 2
		}
		return l.all.length()
	}
	l.walk(others, func(at int) { seen[(*l.all.at(at)).id] = true })
	for id := kv.LeaseID(1); id <= 2*stay; id += 2 {
		if !seen[id] {
			t.Fatalf("lease %d was there all the time and was missed", id)
		}
	}
}

// The bytes of leases and their keys are counted against the quota while they exist.
func TestLessor_SizeBytes(t *testing.T) {
	l, rows := New(), &Rows{Table: noTable{}}
	for id := kv.LeaseID(1); id <= 10; id++ {
		l.Grant(rows, id, 60)
		for i := range 20 {
			l.Attach(rows, id, fmt.Appendf(nil, "%02d", i))
		}
	}
	if want := int64(10 * (EachBytes + 20*(keyBytes+2))); l.SizeBytes() != want {
		t.Fatalf("%d bytes, want %d", l.SizeBytes(), want)
	}
	for id := kv.LeaseID(1); id <= 10; id++ {
		for i := range 20 {
			l.Drop(rows, id, fmt.Appendf(nil, "%02d", i))
		}
		l.Revoke(rows, id)
	}
	if l.SizeBytes() != 0 {
		t.Fatalf("%d bytes of nothing", l.SizeBytes())
	}
}

// Ensure that Expired returns leases with few keys together, or a single lease, and leaves out none for ever.
func TestLessor_Expired_boundsKeys(t *testing.T) {
	l, rows := New(), &Rows{Table: noTable{}}
	for id := kv.LeaseID(1); id <= 9; id++ {
		l.Grant(rows, id, int64(id))
		for i := range map[kv.LeaseID]int{3: 40, 4: 100, 6: 49}[id] {
			l.Attach(rows, id, fmt.Appendf(nil, "%d/%d", id, i))
		}
	}
	l.Promote(moment, 0)
	for _, want := range [][]kv.LeaseID{{1, 2, 3}, {4}, {5, 6, 7}, {8, 9}, nil} {
		if got := l.Expired(moment.Add(time.Minute), 3, 50); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// Ensure that pages are a list, and that no page grows beyond its length.
func TestPages(t *testing.T) {
	var p pages[int]
	const n = 5*pageLength + 7
	for i := range n {
		p.push(i)
	}
	for i := range n {
		if *p.at(i) != i {
			t.Fatalf("%d at %d", *p.at(i), i)
		}
	}
	for _, page := range p.list {
		if cap(page) > 2*pageLength {
			t.Errorf("a page has room for %d", cap(page))
		}
	}
	for i := n; i > 0; i-- {
		if p.length() != i || *p.at(i - 1) != i-1 {
			t.Fatalf("%d values, want %d", p.length(), i)
		}
		p.pop()
	}
	if len(p.list) != 0 {
		t.Errorf("%d pages of nothing", len(p.list))
	}
}
