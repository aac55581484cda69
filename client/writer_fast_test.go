package client

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
)

// serveFast puts five voters behind connections in memory, to a client that thinks that they are far away.
func serveFast(t testing.TB, f *fakeCluster) *writer {
	t.Helper()
	f.voters = []uint64{1, 2, 3, 4, 5}
	var members []*fakeMember
	for id := uint64(1); id <= 5; id++ {
		members = append(members, &fakeMember{cluster: f, id: id, leader: 1})
	}
	w := serveFake(t, members...)
	w.far = 0
	return w
}

// TestWriter_fast wins when nothing goes wrong, and gives all sessions back.
func TestWriter_fast(t *testing.T) {
	f := newFakeCluster()
	w := serveFast(t, f)
	w.parting = time.Minute // a busy machine may take longer than a second
	ctx := patience(t)
	for n := 0; w.table.counted().Won < 50; n++ {
		key := fmt.Sprint(n)
		if _, err := putOne(ctx, w, key); err != nil || f.times(key) != 1 {
			t.Fatalf("%s: %v, applied %d times", key, err, f.times(key))
		}
	}
	w.close()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sessions) != 0 {
		t.Errorf("%d sessions are left", len(f.sessions))
	}
}

// TestWriter_fast_faults writes while members disagree, change their terms, refuse, and lose their streams at every point.
// Each acknowledged write happened once, at the revision that its caller was told.
func TestWriter_fast_faults(t *testing.T) {
	const writers, each, wins = 8, 100, 20
	f := newFakeCluster()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f.fault = func() func(*fakeCluster, *quoratepb.Proposal) fault {
		random := rand.New(rand.NewPCG(seed, 1))
		draw := chance(random, 60, breakBefore, breakAfter, breakTold, againBefore, againAfter, twice, disagree)
		terms := chance(random, 200, nextTerm)
		return func(f *fakeCluster, p *quoratepb.Proposal) fault {
			if terms(f, p) == nextTerm {
				f.term++
				return nextTerm
			}
			return draw(f, p)
		}
	}()
	w := serveFast(t, f)
	ctx := patience(t)
	var load sync.WaitGroup
	var mu sync.Mutex
	revisions := map[int64]string{}
	for i := range writers {
		load.Go(func() {
			// On a busy machine so much may go wrong that offers pause: the first writer goes on until enough were taken.
			for n := 0; n < each || i == 0 && w.table.counted().Won < wins && ctx.Err() == nil; n++ {
				key := fmt.Sprintf("%d-%d", i, n)
				revision, err := putOne(ctx, w, key)
				mu.Lock()
				if err != nil || revisions[revision] != "" {
					t.Errorf("%s: %v, at %d like %q", key, err, revision, revisions[revision])
				}
				revisions[revision] = key
				mu.Unlock()
			}
		})
	}
	load.Wait()
	w.close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, times := range f.executed {
		if times != 1 {
			t.Errorf("%s was applied %d times", key, times)
		}
	}
	for revision, key := range revisions {
		if f.appliedAt[key] != revision {
			t.Errorf("%s was acknowledged at %d, applied at %d", key, revision, f.appliedAt[key])
		}
	}
	stats := w.table.counted()
	t.Logf("%+v", stats)
	if stats.Won < wins {
		t.Errorf("got %+v", stats)
	}
}
