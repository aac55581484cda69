package admission_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that less large work runs at once than there are processors, and that small work does not wait for it.
func TestTurns_Do(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := admission.NewTurns()
		end := make(chan struct{})
		var begun atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				turns.Do(admission.LargeBytes, func() {
					begun.Add(1)
					<-end
				})
			})
		}
		synctest.Wait()
		most := max(1, runtime.GOMAXPROCS(0)-1)
		running, waiting := turns.Counts()
		if int(begun.Load()) != most || running != most || waiting != 20-most {
			t.Errorf("of 20, %d run, and the counts are %d and %d; want %d to run", begun.Load(), running, waiting, most)
		}
		small := false
		if turns.Do(admission.LargeBytes-1, func() { small = true }); !small {
			t.Error("small work was not done")
		}
		close(end)
		if all.Wait(); begun.Load() != 20 {
			t.Errorf("%d ran", begun.Load())
		}
	})
}
