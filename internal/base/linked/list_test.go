package linked_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/base/linked"
)

type waiter struct {
	name  string
	place linked.Place[waiter]
}

func Example() {
	var line linked.List[waiter]
	a, b := &waiter{name: "a"}, &waiter{name: "b"}
	line.PushBack(&a.place, a)
	line.PushBack(&b.place, b)
	a.place.Remove()
	fmt.Println(line.Len(), line.First().name)
	// Output: 1 b
}

// Ensure that a list is what a slice is to which the same was done, front to back.
func TestList_likeASlice(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	var list, other linked.List[waiter]
	var model []*waiter
	all := make([]*waiter, 8)
	for i := range all {
		all[i] = &waiter{name: fmt.Sprint(i)}
	}
	for step := range 5_000 {
		w := all[random.IntN(len(all))]
		w.place.Remove() // of either list, or of none
		model = slices.DeleteFunc(model, func(m *waiter) bool { return m == w })
		switch random.IntN(4) {
		case 0:
			other.PushBack(&w.place, w)
		case 1, 2:
			list.PushBack(&w.place, w)
			model = append(model, w)
		}
		var got []*waiter
		for w := list.First(); w != nil; w = w.place.Next() {
			if w.place.List() != &list {
				t.Fatalf("seed %d, step %d: an element does not know its list", seed, step)
			}
			got = append(got, w)
		}
		if !slices.Equal(got, model) || list.Len() != len(model) {
			t.Fatalf("seed %d, step %d: got %d, want %d elements, or another order", seed, step, list.Len(), len(model))
		}
	}
}
