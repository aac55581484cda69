package apply

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// leased opens a machine with a lease that has so many keys.
func leased(t *testing.T, lease kv.LeaseID, keys int, value []byte) (m *Machine, do func(cmd kv.Command)) {
	eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	if err := Bootstrap(eng, 77, consensus.Config{Voters: []consensus.MemberID{1}}); err != nil {
		t.Fatal(err)
	}
	if m, err = Open(eng, Options{Store: mvcc.Options{CacheBytes: 1 << 20}}); err != nil {
		t.Fatal(err)
	}
	index := m.Applied().Index
	do = func(cmd kv.Command) {
		index++
		results, err := m.Apply([]consensus.Entry{{Index: index, Term: 1, Kind: consensus.EntryCommand, Payload: cmd.Append(nil)}})
		if err != nil || results[0].Err != nil {
			t.Fatal(err, results[0].Err)
		}
	}
	do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: lease, TTLSeconds: 60}})
	for i := range keys {
		do(kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "k%03d", i), Value: value, Lease: lease}})
	}
	return m, do
}

// heap returns the reachable bytes in memory.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// The end of a lease keeps no more of its keys' values than watchers get at once, however many keys there are; and none without
// watchers.
func TestExecutor_revoke_largeValues(t *testing.T) {
	const lease, keys = 7, 40
	value := bytes.Repeat([]byte("v"), 1<<20)
	for _, wanted := range []bool{false, true} {
		m, _ := leased(t, lease, keys, value)
		x := &m.executor
		x.begin(m.store.Begin(), 1, wanted, nil)
		x.w.BeginCommand()
		var res kv.Result
		before := heap()
		x.execute(&kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: lease}}, &res)
		events, held := x.w.EndCommand(), 0
		if grown := int(heap() - before); !wanted && grown > maxEventBytes/2 {
			t.Errorf("%d bytes are in memory until the batch is committed", grown)
		}
		for i := range events {
			held += len(events[i].Prev.Value)
		}
		if room := maxEventBytes; res.Err != nil || len(events) != keys || held > room || !wanted && held > 0 {
			t.Errorf("watched %t: %v, %d events with %d bytes of values, want %d with at most %d", wanted, res.Err, len(events),
				held, keys, room)
		}
		if x.events.wanted {
			t.Errorf("watched %t: watchers are given events without all values", wanted)
		}
		x.w.Abandon()
	}
}

// All deletions of a transaction together keep no more than watchers get at once, of ranges or of single keys.
func TestExecutor_txn_largeValues(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: the race detector finds nothing here")
	}
	const keys, ranges = 100, 10
	value := bytes.Repeat([]byte("v"), 1<<20)
	for _, wanted := range []bool{false, true} {
		for _, single := range []bool{false, true} {
			m, _ := leased(t, 7, keys, value)
			x := &m.executor
			x.begin(m.store.Begin(), 1, wanted, nil)
			x.w.BeginCommand()
			txn := &kv.TxnOp{}
			for i := range keys {
				op := kv.DeleteOp{Key: fmt.Appendf(nil, "k%03d", i)}
				if !single && i%ranges > 0 {
					continue
				}
				if !single {
					op.End = fmt.Appendf(nil, "k%03d", i+ranges)
				}
				txn.Then = append(txn.Then, kv.Op{Delete: &op})
			}
			var res kv.Result
			x.execute(&kv.Command{Txn: txn}, &res)
			events, held := x.w.EndCommand(), 0
			for i := range events {
				held += len(events[i].Prev.Value)
			}
			if res.Err != nil || len(events) != keys || held > maxEventBytes || !wanted && held > 0 {
				t.Errorf("watched %t, single keys %t: %v, %d events with %d bytes of values, want %d with at most %d", wanted, single,
					res.Err, len(events), held, keys, maxEventBytes)
			}
			x.w.Abandon()
		}
	}
}

// Members with watchers and members without have the same sums and hashes after a lease ended.
func TestExecutor_revoke_sameEverywhere(t *testing.T) {
	const lease = 7
	type outcome struct {
		mark ChainMark
		hash uint64
	}
	var outcomes []outcome
	for _, watched := range []bool{false, true} {
		m, do := leased(t, lease, 40, bytes.Repeat([]byte("v"), 1000))
		if watched {
			stream := m.Hub().Open()
			defer stream.Close()
			stream.Create(watch.Request{Key: []byte("k"), End: []byte("l"), PrevKV: true})
		}
		do(kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: lease}})
		do(kv.Command{Put: &kv.PutOp{Key: []byte("k000"), Value: []byte("again")}})
		do(kv.Command{Compact: &kv.CompactOp{Revision: m.store.Revision()}})
		hash, _, _, err := m.store.HashKV(0)
		if err != nil {
			t.Fatal(err)
		}
		outcomes = append(outcomes, outcome{m.chain.latest(), uint64(hash)})
	}
	if outcomes[0] != outcomes[1] {
		t.Errorf("got %+v without watchers, %+v with one", outcomes[0], outcomes[1])
	}
}
