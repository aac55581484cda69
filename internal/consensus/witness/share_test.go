package witness_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/witness"
)

// Ensure that no proposer takes the room of the others, native clients together no more than two members, and that what is
// forgotten makes room again.
func TestPool_HasRoom(t *testing.T) {
	var pool witness.Pool
	member := func(id consensus.MemberID, sequence uint64) consensus.ProposalID {
		return consensus.ProposalID{Session: consensus.SessionID{Member: id, Number: 1}, Sequence: sequence}
	}
	client := func(id consensus.MemberID, sequence uint64) consensus.ProposalID {
		return consensus.ProposalID{Session: consensus.ClientSession(id, 1), Sequence: sequence}
	}
	fill := func(name func(id consensus.MemberID, sequence uint64) consensus.ProposalID, id consensus.MemberID, payload []byte) (n int) {
		for pool.HasRoom(name(id, uint64(n+1)), len(payload)) {
			n++
			r := consensus.Record{Attempt: consensus.Attempt{Proposal: name(id, uint64(n)), Revision: 1}, Payload: payload}
			if !pool.Add(r, consensus.Footprint{}, 0) {
				t.Fatal("not added")
			}
		}
		return n
	}
	if n := fill(member, 1, []byte("x")); n != witness.MaxShareRecords {
		t.Errorf("one member has %d records held", n)
	}
	if n := fill(member, 2, make([]byte, 64<<10)); n != witness.MaxShareBytes/(64<<10) {
		t.Errorf("one member has %d large records held", n)
	}
	clients := 0
	for id := consensus.MemberID(1); id <= 4; id++ {
		n := fill(client, id, []byte("x"))
		clients += n
		if n > witness.MaxShareRecords {
			t.Errorf("client %v has %d records held", id, n)
		}
	}
	if clients != 2*witness.MaxShareRecords || !pool.HasRoom(member(3, 1), 1) {
		t.Errorf("clients have %d records held", clients)
	}
	pool.Forget(func(r *consensus.Record) bool { return r.Proposal == member(1, 7) || r.Proposal == client(1, 7) })
	if !pool.HasRoom(member(1, 5000), 1) || !pool.HasRoom(client(9, 1), 1) {
		t.Error("what is forgotten makes no room")
	}
}

// Ensure that the end of a session meets its owner, until it is removed.
func TestClaims_MeetsOwner(t *testing.T) {
	var claims witness.Claims
	f := consensus.Footprint{Owners: []consensus.MemberID{5}}
	claims.Add(&f)
	claims.Add(&f)
	claims.Remove(&f)
	if !claims.MeetsOwner(5) || claims.MeetsOwner(6) {
		t.Error("owner 5 is not met, or another is")
	}
	if claims.Remove(&f); claims.MeetsOwner(5) {
		t.Error("it is still met")
	}
}
