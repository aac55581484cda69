package lease

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/kv"
)

// These benchmarks use a million leases. They count the processor time of their own thread, on which the load of the machine
// has little effect. "hold" is the longest hold of the lock, which the goroutine that applies needs.

const million = 1_000_000

func millionLeases() *Lessor {
	l, rows := New(), &Rows{Table: noTable{}}
	for id := kv.LeaseID(1); id <= million; id++ {
		l.Grant(rows, id*7919, 60+int64(id%600))
	}
	return l
}

// promoted returns a leader with a million leases, all of which have a deadline.
func promoted() *Lessor {
	l := millionLeases()
	l.Promote(moment, time.Second)
	l.Expired(moment, 1, 1)
	return l
}

// cpu is the processor time of this thread.
func cpu(b *testing.B) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		b.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// spent is the time that a benchmark has measured.
type spent struct{ total, longest time.Duration }

// begin keeps the goroutine on its thread until end.
func begin() *spent {
	runtime.LockOSThread()
	return &spent{}
}

func (s *spent) end() { runtime.UnlockOSThread() }

// time measures do.
func (s *spent) time(b *testing.B, do func()) {
	begun := cpu(b)
	do()
	took := cpu(b) - begun
	s.total, s.longest = s.total+took, max(s.longest, took)
}

// report reports the time for each of inIteration items, and that of a hold of inHold items.
func (s *spent) report(b *testing.B, name string, inIteration, inHold int) {
	each := float64(s.total.Nanoseconds()) / float64(b.N) / float64(inIteration)
	b.ReportMetric(each, "cpu-ns/"+name)
	if inHold > 0 {
		b.ReportMetric(each*float64(inHold)/1e3, "cpu-us/hold")
	}
	b.ReportMetric(0, "ns/op") // meaningless on a busy machine
}

// BenchmarkPromote measures the goroutine that applies when this member begins to lead; "settle" gives all leases their
// deadlines after that.
func BenchmarkPromote(b *testing.B) {
	l := millionLeases()
	b.Run("promote", func(b *testing.B) {
		s := begin()
		defer s.end()
		b.ReportAllocs()
		for b.Loop() {
			s.time(b, func() { l.Promote(moment, time.Second) })
		}
		s.report(b, "promotion", 1, 1)
	})
	b.Run("settle", func(b *testing.B) {
		s := begin()
		defer s.end()
		b.ReportAllocs()
		for b.Loop() {
			l.Promote(moment, time.Second)
			s.time(b, func() { l.Expired(moment, 1, 1) })
		}
		s.report(b, "lease", million, leasesPerHold)
	})
}

// BenchmarkLeases lists all leases: the walk, in holds, and the whole list with sorting, which needs no lock.
func BenchmarkLeases(b *testing.B) {
	l := promoted()
	b.Run("walk", func(b *testing.B) {
		s := begin()
		defer s.end()
		list := make([]Info, million)
		for b.Loop() {
			s.time(b, func() {
				l.walk(l.all.length, func(at int) { list[at] = l.info(*l.all.at(at), moment) })
			})
		}
		s.report(b, "lease", million, leasesPerHold)
	})
	b.Run("all", func(b *testing.B) {
		s := begin()
		defer s.end()
		b.ReportAllocs()
		for b.Loop() {
			s.time(b, func() { l.Leases(moment) })
		}
		s.report(b, "lease", million, 0)
	})
}

// BenchmarkExpire names all leases as due, 250 at once.
func BenchmarkExpire(b *testing.B) {
	const atOnce = 250
	l := promoted()
	s := begin()
	defer s.end()
	named := 0
	b.ReportAllocs()
	for b.Loop() {
		if named >= million {
			b.StopTimer()
			l, named = promoted(), 0
			b.StartTimer()
		}
		s.time(b, func() { named += len(l.Expired(moment.Add(time.Hour), atOnce, atOnce)) })
	}
	s.report(b, "lease", atOnce, leasesPerHold)
}

// BenchmarkKeepAlive renews leases, 256 at once.
func BenchmarkKeepAlive(b *testing.B) {
	const atOnce = 256
	l := promoted()
	ids := make([]kv.LeaseID, atOnce)
	next := kv.LeaseID(0)
	s := begin()
	defer s.end()
	b.ReportAllocs()
	for b.Loop() {
		for i := range ids {
			next = (next+611_953)%million + 1 // far apart, as those of many clients are
			ids[i] = next * 7919
		}
		s.time(b, func() {
			if renewed, err := l.RenewAll(ids, moment); err != nil || renewed[0].Err != nil {
				b.Fatal(renewed[0], err)
			}
		})
	}
	s.report(b, "lease", atOnce, leasesPerHold)
}

// BenchmarkGrant grants a million leases, and attaches a million keys to one: the containers grow, and "longest" is the longest
// time of one call.
func BenchmarkGrant(b *testing.B) {
	run := func(name string, each func(l *Lessor, rows *Rows, i int)) {
		b.Run(name, func(b *testing.B) {
			s := begin()
			defer s.end()
			b.ReportAllocs()
			for b.Loop() {
				l, rows := New(), &Rows{Table: noTable{}}
				l.Promote(moment, 0)
				l.Grant(rows, -1, 60)
				for i := range million {
					s.time(b, func() { each(l, rows, i) })
				}
			}
			s.report(b, name, million, 0)
			b.ReportMetric(float64(s.longest.Microseconds()), "cpu-us/longest")
		})
	}
	run("lease", func(l *Lessor, rows *Rows, i int) {
		l.Grant(rows, kv.LeaseID(i+1)*7919, 60)
		if i%1000 == 0 {
			l.Expired(moment, 1, 1)
		}
	})
	run("key", func(l *Lessor, rows *Rows, i int) { l.Attach(rows, -1, fmt.Appendf(nil, "key%07d", i)) })
}
