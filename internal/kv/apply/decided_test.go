package apply_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

func TestMachine_Decided(t *testing.T) {
	b := newBench(t)
	old, s, other := openSession(b, 1, 5), openSession(b, 1, 7), openSession(b, 2, 3)
	b.propose(s(2), put("a", "1"))
	b.propose(s(3), putLease("a", 99)) // rejected
	b.apply(b.exact(s(4), 2, put("a", "2")))
	b.abort(s(5))
	b.propose(other(2), put("b", "1"))
	b.do(retire(3, 4))
	change := consensus.ConfigChange{Protocol: consensus.ProtocolSingle, Tombs: []consensus.MemberID{2, 4},
		Config: consensus.Config{Voters: []consensus.MemberID{1}, Members: []consensus.Member{{ID: 1}}}}
	e := b.entry(put("", ""))
	e.Kind, e.Payload = consensus.EntryConfig, consensus.AppendConfigChange(nil, &change)
	b.apply(*e)

	check := func(when, what string, id consensus.ProposalID, wantDone, wantRetired bool) {
		t.Helper()
		if done, retired := b.m.Decided(id); done != wantDone || retired != wantRetired {
			t.Errorf("%s, %s: done %v, retired %v", when, what, done, retired)
		}
	}
	for _, when := range []string{"at once", "opened again"} {
		check(when, "executed", s(2), true, false)
		check(when, "rejected", s(3), true, false)
		check(when, "skipped", s(4), false, false)
		check(when, "aborted", s(5), true, false)
		check(when, "an opening", s(1), true, false)
		check(when, "never came", s(900), false, false)
		check(when, "of a session that was not kept", old(1), false, true)
		check(when, "of a number that was passed over", proposals(1, 6)(2), false, true)
		check(when, "of a session that may still open", proposals(1, 8)(2), false, false)
		check(when, "of a session retired before it came", proposals(3, 4)(2), false, true)
		check(when, "of a member never heard of", proposals(6, 1)(2), false, false)
		check(when, "executed, of a member that was removed", other(2), true, false)
		check(when, "not executed, of an open session of a member that was removed", other(3), false, false)
		check(when, "of another session of a member that was removed", proposals(2, 8)(2), false, true)
		check(when, "of a removed member without sessions", proposals(4, 1)(2), false, true)
		check(when, "of no proposal", consensus.ProposalID{}, false, false)
		b.open()
	}
	b.do(retire(2, 3))
	for _, when := range []string{"retired by the leader", "and opened again"} {
		check(when, "executed, of a member that was removed", other(2), false, true)
		b.open()
	}
}

// Ensure that Decided knows an entry whose batch is not committed yet, while Result does not.
func TestMachine_Decided_before_the_commit(t *testing.T) {
	b, h := hookBench(t)
	s := openSession(b, 1, 5)
	called := false
	h.onCommit = func() {
		called = true
		_, visible, err := b.m.Result(s(2))
		if done, retired := b.m.Decided(s(2)); !done || retired || visible || err != nil {
			t.Errorf("done %v, retired %v, visible %v, %v", done, retired, visible, err)
		}
	}
	b.propose(s(2), put("a", "1"))
	if _, visible, err := b.m.Result(s(2)); !called || !visible || err != nil {
		t.Errorf("after the commit: called %v, visible %v, %v", called, visible, err)
	}
}

// Ensure that Decided does not wait for a command that takes long: the loop of a member calls it, and a leader whose loop waits
// is deposed.
func TestMachine_Decided_beside_a_long_command(t *testing.T) {
	b, h := hookBench(t)
	s := openSession(b, 1, 5)
	b.do(put("a", "1"))
	asked := false
	h.onRead = func() {
		asked = true
		answered := make(chan bool)
		go func() {
			done, retired := b.m.Decided(s(2))
			answered <- !done && !retired
		}()
		select {
		case unknown := <-answered:
			if !unknown {
				t.Error("it is not applied yet")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("Decided waits for a command that is being executed")
		}
	}
	b.propose(s(2), del("a", "b"))
	if done, _ := b.m.Decided(s(2)); !done || !asked {
		t.Errorf("done %v, asked %v", done, asked)
	}
}
