package check

import (
	"bytes"

	"github.com/quorate/quorate/internal/kv"
)

// Acknowledgements checks durability: the committed log holds every acknowledged put at the revision of the answer, now and at
// the end, and so does every member that can still read that revision.
type Acknowledgements struct {
	puts    []Ack
	refused []string // values that a member promised not to have written
}

// Ack is one acknowledged write of one key.
type Ack struct {
	Key, Value string
	Revision   kv.Revision
}

// Add records that a put was acknowledged to its client.
func (a *Acknowledgements) Add(key, value string, revision kv.Revision) {
	a.puts = append(a.puts, Ack{key, value, revision})
}

// Refused records that a client was told that its write did not happen and never will.
func (a *Acknowledgements) Refused(command *kv.Command) {
	if command.Put != nil {
		a.refused = append(a.refused, string(command.Put.Value))
	}
	if command.Txn != nil {
		a.refusedOps(command.Txn.Then)
	}
}

func (a *Acknowledgements) refusedOps(ops []kv.Op) {
	for i := range ops {
		switch op := &ops[i]; {
		case op.Put != nil:
			a.refused = append(a.refused, string(op.Put.Value))
		case op.Txn != nil:
			a.refusedOps(op.Txn.Then)
		}
	}
}

// Sample returns at most n of the writes that must be readable.
func (a *Acknowledgements) Sample(n int) []Ack {
	if len(a.puts) <= n {
		return a.puts
	}
	sample := make([]Ack, n)
	for i := range sample {
		sample[i] = a.puts[i*len(a.puts)/n]
	}
	return sample
}

func (a *Acknowledgements) finish(s *Suite) {
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

// Len returns how many puts were acknowledged.
func (a *Acknowledgements) Len() int { return len(a.puts) }
