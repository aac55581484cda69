package apply_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
)

// BenchmarkMachine_Apply applies batches of 64 puts of 256 bytes under a session, on Pebble and on a real disk.
func BenchmarkMachine_Apply(b *testing.B) {
	for _, watchers := range []int{0, 1, 1000} {
		b.Run(fmt.Sprintf("64 puts, %d watchers", watchers), func(b *testing.B) { benchmarkApply(b, watchers, level.First) })
	}
	b.Run("64 puts, authors", func(b *testing.B) { benchmarkApply(b, 0, level.Second) })
}

func benchmarkApply(b *testing.B, watchers int, active level.Level) {
	eng, err := engine.Open(engine.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer eng.Close()
	config := consensus.Config{Voters: []consensus.MemberID{1}, Members: []consensus.Member{{ID: 1}}}
	if err := apply.Bootstrap(eng, 1, config); err != nil {
		b.Fatal(err)
	}
	m, err := apply.Open(eng, apply.Options{})
	if err != nil {
		b.Fatal(err)
	}
	stream := m.Hub().Open()
	defer stream.Close()
	for i := 0; i < watchers; i++ {
		stream.Create(watchAll())
	}
	id := proposals(1, 1)
	session := open(1, 1)
	index := consensus.Index(1)
	head := []consensus.Entry{
		{Index: 1, Term: 1, Kind: consensus.EntryCommand, Proposal: id(1), Payload: session.Append(nil)},
	}
	for _, c := range []kv.Command{{Publish: &kv.PublishOp{Member: 1, Level: active}},
		{Raise: &kv.RaiseOp{Level: active, Finalize: true, Of: m.LevelView()}}} {
		index++
		head = append(head, consensus.Entry{Index: index, Term: 1, Kind: consensus.EntryCommand, Payload: c.Append(nil)})
	}
	if _, err := m.Apply(head); err != nil || m.ActiveLevel() != active {
		b.Fatal(m.ActiveLevel(), err)
	}
	const batch, keys = 64, 10_000
	payloads := make([][]byte, keys)
	for i := range payloads {
		cmd := kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "key-%012d", i*7919%keys), Value: make([]byte, 256)}}
		payloads[i] = cmd.Append(nil)
	}
	entries := make([]consensus.Entry, batch)
	b.ReportAllocs()
	for b.Loop() {
		for i := range entries {
			index++
			entries[i] = consensus.Entry{Index: index, Term: 1, Kind: consensus.EntryCommand, Proposal: id(uint64(index)),
				Payload: payloads[int(index)%keys]}
		}
		if _, err := m.Apply(entries); err != nil {
			b.Fatal(err)
		}
		if watchers > 0 {
			if _, err := stream.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/put")
}
