package client

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/api/quoratepb"
)

var fiveVoters = view{termConfig: termConfig{term: 3, index: 9, configTerm: 2}, leader: 1, voters: []uint64{1, 2, 3, 4, 5}, fast: true}

// offerOne has one write offered to five voters, under session 7.
func offerOne(t *testing.T) (*table, *call, *voterStream) {
	t.Helper()
	table, leader := newTable(), &voterStream{voter: 1}
	c := addOne(t, table)
	table.next()
	table.opened(&quoratepb.SessionOpened{Session: 7})
	offered := table.offer(table.id(), &fiveVoters, leader, []uint64{2, 3, 4, 5})
	if len(offered) != 1 || offered[0].Session != 7 || offered[0].Sequence != 1 || offered[0].Again {
		t.Fatalf("offered %v", offered)
	}
	if r := table.next(); r != nil {
		t.Fatalf("what was offered leaves by the link, too: %v", r)
	}
	return table, c, leader
}

// say has a member say a revision, zero for a refusal, on a view.
func say(table *table, member, revision uint64, on termConfig) {
	table.verdicts(member, &quoratepb.Verdicts{
		TermConfig: on.message(), Leader: member == 1,
		Verdicts: []*quoratepb.Verdict{{Session: 7, Sequence: 1, Revision: revision, Response: []byte("fast")}},
	})
}

func answered(c *call) bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func applied(table *table) {
	table.answer(&quoratepb.Answer{
		Session: 7, Sequence: 1, Verdict: quoratepb.Answer_VERDICT_APPLIED, Response: []byte("slow"),
	})
}

// TestTable_verdicts wins with the leader and three others of five, and then waits for the log before the session may end.
func TestTable_verdicts(t *testing.T) {
	table, c, _ := offerOne(t)
	on := fiveVoters.termConfig
	for _, member := range []uint64{1, 2, 3} {
		say(table, member, 8, on)
	}
	if answered(c) {
		t.Fatal("three of five are enough")
	}
	say(table, 4, 8, on)
	if !answered(c) || c.err != nil || string(c.response) != "fast" || table.counted() != (Stats{Writes: 1, Offered: 1, Won: 1}) {
		t.Fatalf("got %q, %v, %+v", c.response, c.err, table.counted())
	}
	if table.abandon(c) || !table.settling() {
		t.Error("it can be given up after it was won")
	}
	if r := table.farewell(); r != nil {
		t.Errorf("its session is given back: %v", r)
	}
	table.current = c.session
	applied(table)
	if table.settling() || c.session.unresolved != 0 || string(c.response) != "fast" {
		t.Errorf("after the log: %+v, %q", c.session, c.response)
	}
	if r := table.farewell(); r == nil || len(r.Retire) != 1 {
		t.Errorf("after the log: farewell %v", r)
	}
}

// TestTable_verdicts_not counts nothing that does not belong together.
func TestTable_verdicts_not(t *testing.T) {
	on := fiveVoters.termConfig
	term, config := on, on
	term.term++
	config.index++
	for _, tc := range []struct {
		name string
		said func(*table)
	}{
		{name: "another revision", said: func(table *table) { say(table, 4, 9, on) }},
		{name: "another term", said: func(table *table) { say(table, 4, 8, term) }},
		{name: "another configuration", said: func(table *table) { say(table, 4, 8, config) }},
		{name: "the same voter again", said: func(table *table) { say(table, 3, 8, on) }},
		{name: "no voter", said: func(table *table) { say(table, 6, 8, on) }},
		{name: "a refusal", said: func(table *table) { say(table, 4, 0, on) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			table, c, _ := offerOne(t)
			for _, member := range []uint64{1, 2, 3} {
				say(table, member, 8, on)
			}
			tc.said(table)
			if answered(c) {
				t.Fatal("won")
			}
			applied(table)
			if !answered(c) || string(c.response) != "slow" || c.session.unresolved != 0 || c.session.early != 0 {
				t.Errorf("after the log: %q, %+v", c.response, c.session)
			}
			say(table, 5, 8, on)
			if table.counted().Won != 0 {
				t.Error("won after the log")
			}
		})
	}
}

// TestTable_streamLost sends the unanswered writes of the leader's stream again over the link, under the same id,
// decided or not.
func TestTable_streamLost(t *testing.T) {
	for _, won := range []bool{false, true} {
		table, c, leader := offerOne(t)
		for member := uint64(1); won && member <= 4; member++ {
			say(table, member, 8, fiveVoters.termConfig)
		}
		table.restart() // the link's stream is another one
		if r := table.next(); r != nil {
			t.Errorf("won %v: the link sends what the leader's stream will answer: %v", won, r)
		}
		table.streamLost(leader)
		if got := table.offer(table.id(), &fiveVoters, leader, nil); len(got) != 0 {
			t.Errorf("won %v: offered again: %v", won, got)
		}
		r := table.next()
		if r == nil || len(r.Proposals) != 1 || !r.Proposals[0].Again || r.Proposals[0].Sequence != 1 ||
			len(r.Proposals[0].Request) == 0 {
			t.Fatalf("won %v: got %v, want it again", won, r)
		}
		if answered(c) != won {
			t.Errorf("won %v, but answered %v", won, answered(c))
		}
		applied(table)
		if !answered(c) || c.err != nil || won != (string(c.response) == "fast") || table.settling() || c.session.unresolved != 0 {
			t.Errorf("won %v: %q, %v, %+v", won, c.response, c.err, c.session)
		}
	}
}

// TestTable_newTerm asks for what an earlier leader was offered, and still takes the verdicts of its time.
func TestTable_newTerm(t *testing.T) {
	table, c, _ := offerOne(t)
	table.newTerm(3)
	if r := table.next(); r != nil {
		t.Errorf("in the same term: %v", r)
	}
	table.newTerm(4)
	if len(table.sent) != 0 {
		t.Error("it still waits for the former leader")
	}
	for member := uint64(1); member <= 4; member++ {
		say(table, member, 8, fiveVoters.termConfig)
	}
	if !answered(c) {
		t.Error("what was decided in its term is not")
	}
	if r := table.next(); r == nil || len(r.Proposals) != 1 || !r.Proposals[0].Again {
		t.Errorf("got %v, want it again: the session must know", r)
	}
	applied(table)
	if table.settling() {
		t.Error("it is not over")
	}
}

// TestTable_answer_refusedByLeader tells a write that voters may hold from one of which nothing can come.
func TestTable_answer_refusedByLeader(t *testing.T) {
	refused := &quoratepb.Answer{
		Session: 7, Sequence: 1, Verdict: quoratepb.Answer_VERDICT_REFUSED, Code: uint32(codes.InvalidArgument), Message: "no",
	}
	gone := &quoratepb.Answer{Session: 7, Sequence: 1, Verdict: quoratepb.Answer_VERDICT_GONE}
	for _, tc := range []struct {
		name            string
		answer          *quoratepb.Answer
		before, between []uint64 // refuse to hold it
		certain         bool
	}{
		{name: "all refused", answer: refused, before: []uint64{2, 3, 4}, certain: true},
		{name: "they refuse later", answer: refused, before: []uint64{2}, between: []uint64{3, 4}, certain: true},
		{name: "two may hold it", answer: refused, before: []uint64{2, 3}},
		{name: "gone, and nobody holds it", answer: gone, between: []uint64{2, 3, 4, 5}, certain: true},
		{name: "gone, and somebody may hold it", answer: gone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			table, c, _ := offerOne(t)
			for _, id := range tc.before {
				say(table, id, 0, fiveVoters.termConfig)
			}
			for range 2 * maxRefusals {
				table.answer(tc.answer)
				if c.ended || c.session == nil {
					break
				}
				for _, id := range tc.between {
					say(table, id, 0, fiveVoters.termConfig)
				}
				table.retry()
				if r := table.next(); r == nil || len(r.Proposals) != 1 || !r.Proposals[0].Again {
					t.Fatalf("got %v, want it again", r)
				}
			}
			_, doubt := c.err.(*InDoubtError)
			if renamed := c.session == nil; doubt == tc.certain || tc.certain && tc.answer == gone && !renamed {
				t.Errorf("got %v, renamed %v", c.err, renamed)
			}
		})
	}
}

// TestTable_answer_abortedOffer offers a write anew under another name once it is known never to happen under the first.
func TestTable_answer_abortedOffer(t *testing.T) {
	table, c, leader := offerOne(t)
	say(table, 2, 8, fiveVoters.termConfig)
	table.answer(&quoratepb.Answer{Session: 7, Sequence: 1, Verdict: quoratepb.Answer_VERDICT_ABORTED})
	offered := table.offer(table.id(), &fiveVoters, leader, []uint64{2, 3, 4, 5})
	if len(offered) != 1 || offered[0].Sequence != 2 || offered[0].Again || c.ended {
		t.Errorf("got %v, want it under another name", offered)
	}
	for member := uint64(1); member <= 4; member++ {
		say(table, member, 8, fiveVoters.termConfig) // of the first name
	}
	if answered(c) {
		t.Error("verdicts on its first name count")
	}
}
