package check

import (
	"bytes"

	"github.com/quorate/quorate/internal/kv"
)

// acknowledged checks durability: every put that was answered with success is, at the revision of the answer, what the
// committed log holds, now and at the end, on every member that can still read that revision.
type acknowledged struct{ puts []Ack }

// Ack is one acknowledged write of one key.
type Ack struct {
	Key, Value string
	Revision   kv.Revision
}

func (a *acknowledged) init() {}

// Acknowledged tells that a client was answered.
func (s *Suite) Acknowledged(key, value string, revision kv.Revision) {
	s.acks.puts = append(s.acks.puts, Ack{key, value, revision})
}

// Acks returns what must be readable, a sample of at most n.
func (s *Suite) Acks(n int) []Ack {
	if len(s.acks.puts) <= n {
		return s.acks.puts
	}
	sample := make([]Ack, n)
	for i := range sample {
		sample[i] = s.acks.puts[i*len(s.acks.puts)/n]
	}
	return sample
}

func (a *acknowledged) finish(s *Suite) {
	for _, ack := range a.puts {
		got, ok := s.machine.model.At(ack.Key, ack.Revision)
		if !ok || got.ModRevision != ack.Revision || !bytes.Equal(got.Value, []byte(ack.Value)) {
			s.report("acknowledged", "%q=%q was acknowledged at revision %d, where the log has %q (revision %d)",
				ack.Key, ack.Value, ack.Revision, got.Value, got.ModRevision)
		}
	}
}
