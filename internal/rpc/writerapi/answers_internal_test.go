package writerapi

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Ensure that sessions of which much is kept get no more once all of them together are full, and others still do.
func TestServices_roomForResult(t *testing.T) {
	store, err := engine.OpenMem(engine.MemOptions{FS: env.Disk, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := apply.Bootstrap(store, 1, consensus.Config{}); err != nil {
		t.Fatal(err)
	}
	m, err := apply.Open(store, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	index := consensus.Index(0)
	do := func(id consensus.ProposalID, cmd kv.Command) {
		index++
		_, err := m.Apply([]consensus.Entry{{
			Index: index, Term: 1, Kind: consensus.EntryCommand, Proposal: id, Payload: cmd.Append(nil),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	session := func(client uint64) consensus.SessionID {
		return consensus.ClientSession(consensus.MemberID(client), client)
	}
	for client := uint64(1); client <= 2; client++ {
		s := session(client)
		do(consensus.ProposalID{Session: s}, kv.Command{SessionOpen: &kv.SessionOpenOp{Member: client, Number: s.Number}})
	}
	for i := range uint64(5000) {
		id := consensus.ProposalID{Session: session(1), Sequence: i + 1}
		do(id, kv.Command{Put: &kv.PutOp{Key: fmt.Append(nil, i)}})
	}
	for _, c := range []struct {
		client uint64
		most   int64
		want   error
	}{{1, maxResultBytes, nil}, {1, 70_000, errResultsFull}, {2, 70_000, nil}} {
		if got := roomForResult(m, session(c.client), c.most); got != c.want {
			t.Errorf("client %d of %d bytes, where %d may be: %v", c.client, m.ResultBytes(), c.most, got)
		}
	}
}
