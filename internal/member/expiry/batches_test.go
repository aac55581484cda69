package expiry_test

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/member/expiry"
)

// TestBatches_Join lets callers come and batches be answered in any order: every caller gets the answers for its own leases,
// once, from a batch that left after they had come, and few batches leave for many callers.
func TestBatches_Join(t *testing.T) {
	const seed, callers = 3, 5_000
	rng := rand.New(rand.NewSource(seed))
	var batches expiry.Batches
	var flying []*expiry.Batch
	failed := errors.New("no leader")
	answers, asked, left := 0, 0, 0
	leave := func(batch *expiry.Batch) {
		if batch != nil {
			flying = append(flying, batch)
			left++
			asked += len(batch.IDs)
		}
		if len(flying) > 2 {
			t.Fatalf("%d batches are on their way", len(flying))
		}
	}
	answer := func() {
		at := rng.Intn(len(flying))
		batch := flying[at]
		flying = slices.Delete(flying, at, at+1)
		if len(batch.IDs) > expiry.MaxBatchLeases {
			t.Fatalf("a batch of %d leases", len(batch.IDs))
		}
		if rng.Intn(10) == 0 {
			leave(batches.Answered(batch, nil, failed))
			return
		}
		var renewed []lease.Renewal
		for _, id := range batch.IDs {
			renewed = append(renewed, lease.Renewal{TTLSeconds: int64(id)})
		}
		leave(batches.Answered(batch, renewed, nil))
	}
	total := 0
	for i := range callers {
		var ids []kv.LeaseID
		for n := range 1 + rng.Intn(256) {
			ids = append(ids, kv.LeaseID(1000*i+n))
		}
		total += len(ids)
		leave(batches.Join(slices.Clone(ids), func(renewed []lease.Renewal, err error) {
			answers++
			for n := range renewed {
				if renewed[n].TTLSeconds != int64(ids[n]) {
					t.Fatalf("caller %d: %v for %v", i, renewed, ids)
				}
			}
			if err == nil && len(renewed) != len(ids) || err != nil && !errors.Is(err, failed) {
				t.Fatalf("caller %d: %v, %v", i, renewed, err)
			}
		}))
		for len(flying) > 0 && rng.Intn(20) == 0 {
			answer()
		}
	}
	for len(flying) > 0 {
		answer()
	}
	if answers != callers || asked != total || left > callers/4 {
		t.Errorf("seed %d: %d of %d callers are answered, %d of %d leases asked for, in %d batches", seed, answers, callers,
			asked, total, left)
	}
}

func ExampleBatches() {
	var batches expiry.Batches
	join := func(name string, id kv.LeaseID) *expiry.Batch {
		return batches.Join([]kv.LeaseID{id}, func(renewed []lease.Renewal, _ error) { fmt.Println(name, renewed[0].TTLSeconds) })
	}
	first, second := join("a", 1), join("b", 2) // leave at once
	join("c", 3)
	join("d", 4)
	fmt.Println(first.IDs, second.IDs)
	next := batches.Answered(first, []lease.Renewal{{TTLSeconds: 10}}, nil)
	fmt.Println(next.IDs)
	// Output:
	// [1] [2]
	// a 10
	// [3 4]
}
