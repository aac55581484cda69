package wal

import "github.com/quorate/quorate/internal/consensus"

// Recovered is the contents of the log when it was opened.
type Recovered struct {
	Identity Identity
	Hard     consensus.HardState
	Base     consensus.SnapshotMeta // the log begins after Base.Position; zero if it was never compacted or reset
	Entries  []consensus.Entry      // from Base.Position.Index+1 on, no gap; payloads share large buffers, also with Witness
	Witness  []WitnessRecord        // held records, oldest first
	Boots    uint64                 // how many times the data was opened, by the last Batch with Boots
	CutBytes int64                  // of an append that was never acknowledged and is not complete on the disk
}

// Last is the last position of the log.
func (r *Recovered) Last() consensus.Position {
	if n := len(r.Entries); n > 0 {
		return r.Entries[n-1].Position()
	}
	return r.Base.Position
}

// Holds reports whether mark is a position of the log. An entry of another term at its index does not count.
func (r *Recovered) Holds(mark consensus.Position) bool {
	base := r.Base.Position
	if mark.Index <= base.Index {
		return mark == base
	}
	at := mark.Index - base.Index - 1
	return at < consensus.Index(len(r.Entries)) && r.Entries[at].Term == mark.Term
}
