package member

import (
	"testing"

	"github.com/quorate/quorate/internal/applier"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/node"
)

// Ensure that the core is told the revision of the store also when the last entry of a batch is a repetition, whose result
// bears the revision of its first entry: what the core promises next must lie beyond.
func TestApplying_revision(t *testing.T) {
	m := memberOfMachine(t)
	body, err := node.New(node.Options{Raft: raft.Defaults(1)}, raft.Restored{}, node.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	m.loop.node = body
	session := consensus.SessionID{Member: 1, Number: 1}
	var entries []consensus.Entry
	log := func(sequence uint64, command kv.Command) {
		entries = append(entries, consensus.Entry{
			Index: consensus.Index(len(entries) + 1), Term: 1, Kind: consensus.EntryCommand, Payload: command.Append(nil),
			Proposal: consensus.ProposalID{Session: session, Sequence: sequence},
		})
	}
	put := kv.Command{Put: &kv.PutOp{Key: []byte("a")}}
	log(0, kv.Command{SessionOpen: &kv.SessionOpenOp{Member: 1, Number: 1}})
	log(1, put)
	log(2, put)
	log(1, put)
	if err := m.ports.applying.applier.Do([]applier.Work{{Entries: entries}}); err != nil {
		t.Fatal(err)
	}
	want := uint64(m.data.Machine.Store().Revision())
	told := m.inbox.take()
	if len(told) != 1 || told[0].(raft.Applied).Revision != want || want != 3 {
		t.Errorf("the store is at revision %d, the core was told %+v", want, told)
	}
}
