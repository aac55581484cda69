package apply

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Ensure that replacing large values by small ones keeps no more of them in memory than watchers may get, and that the chain is
// the same whether or not they are kept. Any client may send such a command, and every member applies it.
func TestMachine_Apply_overwritesLargeValues(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine with much memory: the race detector, which runs with -short, finds nothing")
	}
	const keys, size = 80, 1 << 20
	puts := func(value []byte) (all []kv.Op) {
		for i := range keys {
			all = append(all, kv.Op{Put: &kv.PutOp{Key: fmt.Appendf(nil, "k%03d", i), Value: value}})
		}
		return all
	}
	one := []kv.Command{{Txn: &kv.TxnOp{Then: puts([]byte("small"))}}}
	var many []kv.Command
	for _, op := range puts([]byte("small")) {
		many = append(many, kv.Command{Put: op.Put})
	}
	for _, tc := range []struct {
		name     string
		commands []kv.Command
	}{{"one transaction", one}, {"puts that are applied together", many}} {
		t.Run(tc.name, func(t *testing.T) {
			var sums []uint64
			for _, watched := range []bool{false, true} {
				eng, err := engine.Open(engine.Options{Dir: t.TempDir(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
				if err != nil {
					t.Fatal(err)
				}
				defer eng.Close()
				m, apply := bootstrapped(t, eng)
				for _, op := range puts(make([]byte, size)) {
					apply(kv.Command{Put: op.Put})
				}
				most := keys * size * 3 / 10 // the engine compacts meanwhile
				if watched {
					stream := m.Hub().Open()
					defer stream.Close()
					stream.Create(watch.Request{Key: []byte("k"), End: []byte("l"), PrevKV: true})
					most += maxEventBytes
				}
				if err := eng.Defragment(t.Context()); err != nil {
					t.Fatal(err)
				}
				if held := mostHeld(func() { apply(tc.commands...) }); held > most {
					t.Errorf("watched %v: applying held %d KiB, want at most %d", watched, held>>10, most>>10)
				} else {
					t.Logf("watched %v: %d KiB", watched, held>>10)
				}
				sums = append(sums, m.chain.sum)
			}
			if sums[0] != sums[1] {
				t.Errorf("the chain ends with %x, and with %x where somebody watches", sums[0], sums[1])
			}
		})
	}
}
