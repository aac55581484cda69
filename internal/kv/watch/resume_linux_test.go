package watch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// BenchmarkWatchResume lets 20,000 watchers resume over 5,000 events, each of a key of its own and all at once, while the state
// machine goes on to publish: it measures the longest wait of Publish, and the processor time of the whole.
func BenchmarkWatchResume(b *testing.B) {
	const watchers, writes = 20_000, 5_000
	for _, streams := range []int{1, 64, 1_000} {
		for name, options := range map[string]Options{"store": {HistoryBytes: 1}, "history": {}} {
			b.Run(fmt.Sprintf("streams%d/%s", streams, name), func(b *testing.B) {
				store, hub := openStore(b), NewHub(options)
				hub.Reset(store)
				keep := hub.Open() // so that the hub keeps a history
				defer keep.Close()
				keep.Create(Request{Key: []byte("other")})
				for i := range writes {
					put(b, store, hub, []byte("v"), fmt.Sprintf("w%06d", i%watchers))
				}
				rev := store.Revision()
				var longest time.Duration
				used := processorTime(b)
				for b.Loop() {
					longest = max(longest, resume(b, hub, rev, watchers, streams))
				}
				b.ReportMetric(float64(longest.Microseconds()), "longest-wait-us")
				b.ReportMetric(float64((processorTime(b)-used).Milliseconds())/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// resume returns the longest time that publishing took until all watchers had caught up.
func resume(b *testing.B, hub *Hub, rev kv.Revision, watchers, streams int) (longest time.Duration) {
	var running sync.WaitGroup
	for i := range streams {
		running.Go(func() {
			s := hub.Open()
			defer s.Close()
			for n := i; n < watchers; n += streams {
				s.Create(Request{Key: fmt.Appendf(nil, "w%06d", n), Start: 2})
			}
			for ctx := doneContext(); ; {
				_, err := s.Next(ctx)
				if errors.Is(err, context.Canceled) && !s.Lagging() {
					return
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					b.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			return longest
		case <-time.After(100 * time.Microsecond):
		}
		begun := time.Now()
		hub.Publish(rev, nil) // published already: the call only takes the lock
		longest = max(longest, time.Since(begun))
	}
}

// BenchmarkWatchHold measures the processor time of the work for watchersPerHold parties in one hold of the lock, each with an
// event to get, and of the preceding work without the lock.
func BenchmarkWatchHold(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	store, hub := openStore(b), NewHub(Options{})
	hub.Reset(store)
	keep := hub.Open() // so that the hub keeps a history
	defer keep.Close()
	keep.Create(Request{Key: []byte("other")})
	for i := range watchersPerHold {
		put(b, store, hub, []byte("v"), fmt.Sprintf("w%06d", i))
	}
	var planned, finished time.Duration
	for b.Loop() {
		s := hub.Open()
		for i := range watchersPerHold {
			s.Create(Request{Key: fmt.Appendf(nil, "w%06d", i), Start: 2})
		}
		begun := threadTime(b)
		c := s.plan(0)
		read := threadTime(b)
		if !s.finish(&c) || s.behind.Len() > 0 {
			b.Fatal("nothing was done")
		}
		planned, finished = planned+read-begun, finished+threadTime(b)-read
		s.Close()
	}
	b.ReportMetric(float64(planned.Microseconds())/float64(b.N), "plan-us/op")
	b.ReportMetric(float64(finished.Microseconds())/float64(b.N), "finish-us/op")
}

func processorTime(b *testing.B) time.Duration { return usedBy(b, syscall.RUSAGE_SELF) }
func threadTime(b *testing.B) time.Duration    { return usedBy(b, syscall.RUSAGE_THREAD) }

func usedBy(b *testing.B, who int) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(who, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
