package proposals

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

type ignored struct{}

func (*ignored) Complete(kv.Result, error) {}

// BenchmarkTable_put is the way of a put through the table, 64 at a time.
func BenchmarkTable_put(b *testing.B) {
	const batch = 64
	t := New(self, 1, 0)
	t.sessions.length = 1 << 62
	done, payload := &ignored{}, (&kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: make([]byte, 100)}}).Append(nil)
	entries, results := make([]consensus.Entry, batch), make([]kv.Result, batch)
	entries[0].Proposal = t.Take(1, time.Time{}, true).Commands[0].ID
	t.Resolve(entries[:1], results[:1])
	b.ReportAllocs()
	for b.Loop() {
		for range batch {
			if _, err := t.Add(consensus.EntryCommand, payload, done); err != nil {
				b.Fatal(err)
			}
		}
		for i, p := range t.Take(1, time.Time{}, true).Offers {
			entries[i].Proposal = p.ID
			t.Awaits(p.ID)
		}
		t.Resolve(entries, results)
	}
}
