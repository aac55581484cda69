package backup_test

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that a hundred thousand names of segments that overlap as somebody likes are planned with in a moment, and that the
// true ones among them still lead to the end.
func TestCatalog_Plan_hostile(t *testing.T) {
	const n, last = 100_000, 200_000
	rng := rand.New(rand.NewSource(1))
	for name, span := range map[string]func(i int) (first, end int){
		"all from the first entry": func(i int) (int, int) { return 1, 2 + i },
		"ends that fall":           func(i int) (int, int) { return 1 + i, 3*n - 1 - i },
		"any":                      func(int) (int, int) { first := 1 + rng.Intn(last); return first, first + rng.Intn(last) },
		"one end":                  func(i int) (int, int) { return 1 + i, last },
	} {
		c := &backup.Catalog{Cluster: 7}
		add := func(first, end int, sum uint64) {
			c.Segments = append(c.Segments, backup.Stored{SegmentName: backup.SegmentName{Cluster: 7, First: consensus.Index(first),
				Before: uint64(first - 1), End: backup.Point{Index: consensus.Index(end), Sum: sum},
				Hash: backup.HashOf(fmt.Append(nil, first, end, sum))}})
		}
		for i := range n {
			first, end := span(i)
			add(first, end, 1<<40+uint64(i))
		}
		for i := range 20 { // 10,000 entries each, which end with the last
			add(i*10_000+1, (i+1)*10_000, uint64((i+1)*10_000))
		}
		c.Bases = []backup.Base{{BaseName: backup.BaseName{Cluster: 7}}}
		c.Sort()
		began := time.Now()
		plan, err := c.Plan(backup.Target{Index: last}, none)
		if err != nil || plan.End.Index < last {
			t.Errorf("%s: %+v, %v", name, plan, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: a plan took %v", name, took)
		}
		began = time.Now()
		strays, _ := c.Strays(plan, none)
		if len(strays) > backup.MaxStrays+1 || time.Since(began) > 20*time.Second {
			t.Errorf("%s: %d ends beside it, after %v", name, len(strays), time.Since(began))
		}
		began = time.Now()
		if _, err := c.History(plan.End.Point); err != nil || time.Since(began) > 20*time.Second {
			t.Errorf("%s: its history: %v, after %v", name, err, time.Since(began))
		}
		if led := len(c.LeadOn(&c.Bases[0])); led < 20 {
			t.Errorf("%s: %d segments lead on", name, led)
		}
	}
}

// Ensure that many ends behind a long chain of segments that somebody put beside the others cost no look at the chain for each.
func TestCatalog_Strays_hostile(t *testing.T) {
	const n = 60_000
	c := &backup.Catalog{Cluster: 7, Bases: []backup.Base{{BaseName: backup.BaseName{Cluster: 7}}}}
	add := func(first, end int, before, sum uint64) {
		c.Segments = append(c.Segments, backup.Stored{SegmentName: backup.SegmentName{Cluster: 7, First: consensus.Index(first),
			Before: before, End: backup.Point{Index: consensus.Index(end), Sum: sum}, Hash: backup.HashOf(fmt.Append(nil, first, end, sum))}})
	}
	add(1, 2*n, 0, 1)
	for i := 1; i < n; i++ {
		add(i, i, uint64(i-1)+1<<40, uint64(i)+1<<40)
		add(n, n, n-1+1<<40, uint64(i)+1<<41)
	}
	c.Sort()
	began := time.Now()
	plan, err := c.Plan(backup.Target{}, none)
	if err != nil {
		t.Fatal(err)
	}
	planned := time.Since(began)
	began = time.Now()
	strays, _ := c.Strays(plan, none)
	if took := time.Since(began); len(strays) != backup.MaxStrays+1 || took > 200*planned {
		t.Errorf("%d ends, after %v; a plan took %v", len(strays), took, planned)
	}
}

func none(backup.Hash) bool { return false }
