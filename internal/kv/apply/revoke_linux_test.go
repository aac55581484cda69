package apply_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
)

// BenchmarkMachine_Revoke measures how long applying waits for the end of leases: of 250 that have so many keys each, together
// in the log, or of one that has all of them.
func BenchmarkMachine_Revoke(b *testing.B) {
	for _, row := range []struct{ leases, keys int }{{250, 0}, {125, 1}, {250, 2}, {1, 500}, {1, 10_000}, {1, 100_000}, {1, 1_000_000}} {
		b.Run(fmt.Sprintf("%d leases of %d keys", row.leases, row.keys), func(b *testing.B) {
			benchmarkRevoke(b, row.leases, row.keys)
		})
	}
}

func benchmarkRevoke(b *testing.B, leases, keys int) {
	eng, err := engine.Open(engine.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer eng.Close()
	if err := apply.Bootstrap(eng, 1, consensus.Config{}); err != nil {
		b.Fatal(err)
	}
	m, err := apply.Open(eng, apply.Options{})
	if err != nil {
		b.Fatal(err)
	}
	index := consensus.Index(0)
	run := func(commands []kv.Command) {
		var entries []consensus.Entry
		for i := range commands {
			index++
			entries = append(entries, consensus.Entry{
				Index: index, Term: 1, Kind: consensus.EntryCommand, Payload: commands[i].Append(nil),
			})
		}
		if _, err := m.Apply(entries); err != nil {
			b.Fatal(err)
		}
	}
	runtime.LockOSThread() // its processor time is counted: the load of the machine has little effect on it
	defer runtime.UnlockOSThread()
	spent := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		var revokes []kv.Command
		for id := kv.LeaseID(1); id <= kv.LeaseID(leases); id++ {
			run([]kv.Command{grant(id)})
			for from := 0; from < keys; from += 1000 {
				var puts []kv.Command
				for i := from; i < min(from+1000, keys); i++ {
					key := fmt.Appendf(nil, "key-%06d-%d", i, id)
					puts = append(puts, kv.Command{Put: &kv.PutOp{Key: key, Value: make([]byte, 256), Lease: id}})
				}
				run(puts)
			}
			revokes = append(revokes, revoke(id))
		}
		b.StartTimer()
		begun := threadCPU(b)
		run(revokes)
		spent += threadCPU(b) - begun
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N)/1e3, "cpu-ms/apply")
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*leases*max(keys, 1))/1e3, "cpu-us/key")
	b.ReportMetric(0, "ns/op") // meaningless on a busy machine
}

// threadCPU is the processor time of this thread.
func threadCPU(b *testing.B) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		b.Fatal(err)
	}
	return time.Duration(now.Nano())
}
