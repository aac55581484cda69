package histogram_test

import (
	"maps"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/base/histogram"
)

func TestHistogram_Observe(t *testing.T) {
	h := histogram.New(0.5, 3) // 0.5, 1, 2
	for _, value := range []float64{0, 0.5, 0.75, 2, 100} {
		h.Observe(value)
	}
	h.ObserveMany(1, 2)
	h.ObserveMany(7, 0)
	count, sum, buckets := h.Read()
	if want := map[float64]uint64{0.5: 2, 1: 5, 2: 6}; count != 7 || sum != 105.25 || !maps.Equal(buckets, want) {
		t.Errorf("got %d observations, sum %v, %v; want 7, 105.25, %v", count, sum, buckets, want)
	}
}

// Ensure that nothing is lost when many observe at once.
func TestHistogram_Observe_concurrent(t *testing.T) {
	h := histogram.New(1, 2)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				h.Observe(0.5)
			}
		})
	}
	wg.Wait()
	if count, sum, _ := h.Read(); count != 8000 || sum != 4000 {
		t.Errorf("got %d observations, sum %v; want 8000 and 4000", count, sum)
	}
}
