package check

import (
	"bytes"

	"github.com/quorate/quorate/internal/kv"
)

// acknowledged checks durability: every put that was answered with success is, at the revision of the answer, what the
// committed log holds, now and at the end, on every member that can still read that revision.
type acknowledged struct {
	puts    []Ack
	refused []string // values that a member promised not to have written
}

// Ack is one acknowledged write of one key.
type Ack struct {
	Key, Value string
	Revision   kv.Revision
}

// Acknowledged tells that a client was answered.
func (s *Suite) Acknowledged(key, value string, revision kv.Revision) {
	s.acks.puts = append(s.acks.puts, Ack{key, value, revision})
}

// Refused tells that a client was told that its write did not happen and never will.
func (s *Suite) Refused(command *kv.Command) {
	switch {
	case command.Put != nil:
		s.acks.refused = append(s.acks.refused, string(command.Put.Value))
	case command.Txn != nil && command.Txn.Then[0].Put != nil:
		s.acks.refused = append(s.acks.refused, string(command.Txn.Then[0].Put.Value))
	}
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
	written := s.writtenValues()
	for _, value := range a.refused {
		if revision, ok := written[value]; ok {
			s.report("acknowledged", "%q was refused as if nothing had happened, but written at revision %d",
				value, revision)
		}
	}
}

// AckCount returns how many puts were acknowledged.
func (s *Suite) AckCount() int { return len(s.acks.puts) }
