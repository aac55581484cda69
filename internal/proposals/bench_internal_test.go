package proposals

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

type ignored struct{}

func (*ignored) Complete(kv.Result, error) {}

// BenchmarkTable_put is the way of a put through the table, 64 at a time.
func BenchmarkTable_put(b *testing.B) {
	const batch = 64
	t := New(self, 1)
	t.sessions.length = 1 << 62
	done, payload := &ignored{}, (&kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: make([]byte, 100)}}).Append(nil)
	var left []Leaving
	entries, results := make([]consensus.Entry, batch), make([]kv.Result, batch)
	left = t.Take(left[:0], 1)
	entries[0].Proposal = left[0].ID
	t.Resolve(entries[:1], results[:1])
	b.ReportAllocs()
	for b.Loop() {
		for range batch {
			if _, err := t.Add(consensus.EntryCommand, payload, done); err != nil {
				b.Fatal(err)
			}
		}
		left = t.Take(left[:0], 1)
		for i := range left {
			entries[i].Proposal = left[i].ID
			t.Awaits(left[i].ID)
		}
		t.Resolve(entries, results)
	}
}
