package apply_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// clientNumber is the number of the n-th session of the clients.
func clientNumber(n uint64) uint64 { return consensus.ClientSession(0, n).Number }

func TestMachine_Apply_clientSessions(t *testing.T) {
	b := newBench(t)
	unknown := func(what string, res kv.Result) {
		t.Helper()
		if res.Err != kv.ErrSessionUnknown {
			t.Errorf("%s: got %+v, want it refused", what, res)
		}
	}
	one, two := clientNumber(1), clientNumber(2)
	a := openSession(b, 100, one)
	z := openSession(b, 200, one) // another client may have the same number
	own := openSession(b, 100, 7) // a member whose id a client has drawn as well
	first := b.propose(a(2), put("k", "1"))
	b.propose(a(2), put("k", "2"))
	if got := b.get("k"); got.Version != 1 {
		t.Errorf("one proposal of a client was applied %d times", got.Version)
	}
	b.want("its result", b.propose(a(2), put("k", "3")), first)

	// A later session, and its end.
	a2 := openSession(b, 100, two, one)
	b.want("kept", b.propose(a(2), put("k", "4")), first)
	unknown("an opening that comes late", b.propose(proposals(100, clientNumber(0))(1), open(100, clientNumber(0))))
	b.do(retire(100, one))
	unknown("retired", b.propose(a(2), put("k", "5")))
	unknown("opened again", b.propose(a(1), open(100, one)))
	unknown("of a client that is too late by another one's end", b.propose(proposals(300, one)(1), open(300, one)))
	if res := b.propose(z(2), put("z", "1")); res.Err != nil {
		t.Errorf("an open session of the same number: %v", res.Err)
	}
	if res := b.propose(own(2), put("own", "1")); res.Err != nil {
		t.Errorf("the member's own session: %v", res.Err)
	}

	// The retirement of a session that was never open does not count: a client could make all others be refused with it.
	b.do(retire(400, clientNumber(1<<40)))
	b.open()
	unknown("after a restart", b.propose(a(1), open(100, one)))
	next := b.m.NextClientSession(500, 0)
	if later := b.m.NextClientSession(500, clientNumber(9)); later.ClientNumber() != 10 {
		t.Errorf("after one that this member does not know: got %v, want the tenth", later)
	}
	if next.ClientNumber() != 3 {
		t.Errorf("next: got %v, want the third", next)
	}
	if got := len(b.m.ClientSessions()); got != 2 {
		t.Errorf("got %d open sessions of clients, want 2", got)
	}
	for _, tc := range []struct {
		session consensus.SessionID
		ended   bool
	}{{a(1).Session, true}, {a2(1).Session, false}, {next, false}} {
		if got := b.m.SessionEnded(tc.session); got != tc.ended {
			t.Errorf("session %v has ended: %v", tc.session, got)
		}
	}
	openSession(b, 500, next.Number)
	if res := b.propose(a2(2), put("k", "6")); res.Err != nil {
		t.Errorf("the second session: %v", res.Err)
	}
}
