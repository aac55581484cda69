package front

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// reading is a call that is finished by a function.
type reading func()

func (f reading) finish() { f() }

func (f reading) flush() {}

// Ensure that calls are finished while others wait for a disk, by so many goroutines at most, which end when there is nothing
// left to do.
func TestReaders_slowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r readers
		var running sync.WaitGroup
		r.start(2, &running)
		synctest.Wait()
		disk := make(chan struct{})
		var mu sync.Mutex
		begun, finished := 0, 0
		finish := func() {
			mu.Lock()
			begun++
			mu.Unlock()
			<-disk
			mu.Lock()
			finished++
			mu.Unlock()
		}
		const calls = maxReaders + 100
		for range calls {
			r.push(reading(finish))
			<-time.After(2 * readerStall)
			synctest.Wait()
		}
		if begun != maxReaders {
			t.Errorf("%d calls are being finished, want %d", begun, maxReaders)
		}
		close(disk)
		synctest.Wait()
		if finished != calls || r.working != 0 || r.idle != 2 {
			t.Errorf("%d calls were finished, %d goroutines work, %d wait", finished, r.working, r.idle)
		}
		r.stop()
		running.Wait()
	})
}
