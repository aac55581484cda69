package transport

import (
	"testing"

	"github.com/quorate/quorate/internal/identity"
)

// Ensure that a stream which ends while it is confirmed takes no place, and ends no other stream of its member.
func TestTransport_promote_ended(t *testing.T) {
	tr := &Transport{incoming: map[streamKey]*incoming{}}
	tr.refusals.init()
	tr.peers.Store(&[]*peer{})
	open := func(ended *error, evidence identity.Evidence) *incoming {
		return &incoming{box: newOutbox(limits{messages: 1, bytes: 1, largest: 1}), end: func(err error) { *ended = err },
			kind: streamOrdered, claim: identity.Claim{Member: 2}, evidence: evidence}
	}
	var first, second error
	in := open(&first, identity.Said)
	tr.adopt(in)
	tr.release(in)
	good := open(&second, identity.Dialled)
	tr.adopt(good)
	tr.promote(in)
	if got := tr.incoming[tr.key(good)]; got != good || second != nil {
		t.Errorf("a stream that has ended has the place: %t; the other one ended with %v", got == in, second)
	}
}
