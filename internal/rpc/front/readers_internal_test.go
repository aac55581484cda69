package front

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// reading is a call of a connection.
type reading struct {
	of       int
	finished func()
	flushed  func()
}

func (r *reading) finish() { r.finished() }

func (r *reading) flush() { r.flushed() }

func (r *reading) conn() any { return r.of }

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
		for i := range calls {
			r.push(&reading{i, finish, func() {}})
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

// Ensure that answers to one connection are written together, up to a bound, and that a call which waits for a disk holds up no
// answer to another connection.
func TestReaders_flush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := readers{taken: time.Now()}
		var running sync.WaitGroup
		disk := make(chan struct{})
		finished, flushes := map[int]int{}, map[int]int{}
		push := func(of int, wait <-chan struct{}) {
			finish := func() {
				<-wait
				finished[of]++
			}
			r.push(&reading{of, finish, func() { flushes[of]++ }})
		}
		at := make(chan struct{})
		close(at)
		for range readBatch + 1 {
			push(1, at)
		}
		push(2, at)
		push(3, disk)
		push(4, at)
		r.start(1, &running)
		synctest.Wait()
		if finished[1] != readBatch+1 || flushes[1] != 2 || flushes[2] != 1 || finished[3] != 0 || finished[4] != 0 {
			t.Errorf("while one waits: finished %v, flushed %v", finished, flushes)
		}
		<-time.After(2 * readerStall)
		push(5, at)
		synctest.Wait()
		if flushes[4] != 1 || flushes[5] != 1 || flushes[3] != 0 || len(r.queue) != 0 {
			t.Errorf("with another goroutine: finished %v, flushed %v", finished, flushes)
		}
		close(disk)
		synctest.Wait()
		if flushes[3] != 1 || r.working != 0 || r.idle != 1 {
			t.Errorf("in the end: flushed %v, %d work, %d wait", flushes, r.working, r.idle)
		}
		r.stop()
		running.Wait()
	})
}

// Ensure that the goroutines of calls that came together run a few at a time.
func TestConnection_begin(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	c := &connection{}
	var ran atomic.Int64
	for i := range int64(1000) {
		if waiting := i - ran.Load(); waiting > 3*maxBegun {
			t.Fatalf("%d goroutines wait for a processor", waiting)
		}
		c.begin(func() { ran.Add(1) })
	}
}
