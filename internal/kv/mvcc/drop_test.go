package mvcc_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// taken is an account with room for left bytes.
type taken struct{ left int }

func (a *taken) Take(n int) error {
	if a.left -= n; a.left < 0 {
		return errFull
	}
	return nil
}

func (*taken) Walk(int) error { return nil }

func (*taken) Release() {}

// Ensure that a range which is sorted or filtered, and limited, takes room for little more than its answer, however many keys
// it reads, and returns the right ones of all.
func TestStore_RangeWithin_limitedTakesLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine with much memory: the race detector, which runs with -short, finds nothing")
	}
	const keys, size, room = 6000, 500, 1 << 20
	limits := []int64{100, 1, 2, 400, math.MaxInt64}
	for _, o := range openers {
		s, _ := openStore(t, o, filestest.NewMem(), -1)
		for i := range keys {
			n := i * 7919 % keys
			put(t, s, fmt.Sprintf("k%05d", n), fmt.Sprintf("%0*d", size, i%50), 0)
			if i%3 == 0 {
				put(t, s, fmt.Sprintf("k%05d", n), fmt.Sprintf("%0*d", size, i%70), 0)
			}
		}
		for _, limit := range limits {
			for target := kv.SortByKey; target <= kv.SortByValue; target++ {
				for order := kv.SortNone; order <= kv.SortDescend; order++ {
					for _, minMod := range []kv.Revision{0, 1000} {
						op := kv.RangeOp{Key: []byte("k"), End: []byte("l"), Target: target, Order: order, MinMod: minMod, Limit: limit}
						if limit < math.MaxInt64 && minMod == 0 && order == kv.SortNone {
							continue // etcd cuts in the order of keys, before it sorts
						}
						name := fmt.Sprintf("%s: limit %d, target %d, order %d, from %d", o.name, limit, target, order, minMod)
						every := op
						every.Limit = 0
						want, _, err := s.Range(&every)
						if err != nil {
							t.Fatal(name, err)
						}
						if int64(len(want.KVs)) > limit {
							want.KVs, want.More = want.KVs[:limit], true
						}
						account := &taken{room}
						if limit == math.MaxInt64 {
							account.left = math.MaxInt
						}
						got, _, err := s.RangeWithin(&op, account)
						if err != nil {
							t.Errorf("%s: %v", name, err)
						} else if !reflect.DeepEqual(got, want) {
							t.Errorf("%s: got %d pairs, %v, of %d, want %d, %v, of %d, or others", name, len(got.KVs), got.More,
								got.Count, len(want.KVs), want.More, want.Count)
						}
					}
				}
			}
		}
	}
}
