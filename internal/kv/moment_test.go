package kv_test

import (
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/kv"
)

// Ensure that what moments say of a revision and of a time is what was the case, as long as clocks are right: each revision was
// written at a time of its own, moments were taken between them, and some were noted only after later writes. Where a clock went
// back, the first answer must come.
func TestMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		var list kv.Moments
		written := []int64{0, 0} // the time of each revision, from 2 on
		now := int64(0)
		for range rng.IntN(40) {
			for range rng.IntN(4) {
				now += 1 + rng.Int64N(3)
				written = append(written, now)
			}
			now++
			m := kv.Moment{Time: now, Seen: kv.Revision(len(written) - 1)}
			now++
			for range rng.IntN(3) {
				now++
				written = append(written, now)
			}
			if m.Noted = kv.Revision(len(written) - 1); len(list) == 0 || m.Seen > list[len(list)-1].Seen {
				list = append(list, m)
			}
		}
		for rev := 2; rev < len(written); rev++ {
			after, before := list.Of(kv.Revision(rev))
			if after != nil && after.Time >= written[rev] || before != nil && before.Time <= written[rev] {
				t.Fatalf("revision %d, of %d, is between %v and %v: %v", rev, written[rev], after, before, list)
			}
			if n := len(list); n > 0 && (after == nil && list[0].Noted < kv.Revision(rev) || before == nil && list[n-1].Seen >= kv.Revision(rev)) {
				t.Fatalf("revision %d is between %v and %v: %v", rev, after, before, list)
			}
		}
		for at := range now + 2 {
			after, before, again := list.At(at)
			last := 0 // the last revision written by then
			for rev := range written {
				if written[rev] <= at {
					last = rev
				}
			}
			if again != nil || after != nil && int(after.Seen) > last || before != nil && int(before.Noted) < last ||
				after == nil && before == nil && len(list) > 0 {
				t.Fatalf("at %d was revision %d, not between %v and %v (%v): %v", at, last, after, before, again, list)
			}
		}
	}
	back := kv.Moments{{Time: 10, Seen: 2}, {Time: 20, Seen: 3}, {Time: 12, Seen: 4}, {Time: 15, Seen: 5}, {Time: 30, Seen: 6}}
	after, before, again := back.At(15)
	if after == nil || before == nil || again == nil || after.Seen != 2 || before.Seen != 3 || again.Seen != 5 {
		t.Errorf("%v %v %v", after, before, again)
	}
	if after, _, again := back.At(11); after.Seen != 2 || again != nil {
		t.Errorf("%v %v", after, again)
	}
	if got := back.UpTo(4); len(got) != 3 {
		t.Errorf("%v", got)
	}
}
