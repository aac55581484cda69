package nativeclient

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/api/quoratepb"
)

var fiveVoters = View{
	termConfig: termConfig{term: 3, index: 9, configTerm: 2}, Leader: 1, Voters: []uint64{1, 2, 3, 4, 5}, fast: true,
}

// streamsTo are open streams to voters, whose ids are those of the voters.
func streamsTo(voters ...uint64) map[uint64]Stream {
	streams := map[uint64]Stream{}
	for _, id := range voters {
		streams[id] = Stream{ID: id, Open: true}
	}
	return streams
}

// offerAll returns the proposals that are offered to five voters.
func offerAll(table *Table) []*quoratepb.Proposal {
	table.view = fiveVoters
	if o := table.Offer(time.Unix(1000, 0), streamsTo(fiveVoters.Voters...)); o != nil {
		return o.Proposals.Proposals
	}
	return nil
}

// offerOne has one write offered to five voters, under session 7.
func offerOne(t *testing.T) (*Table, *Call) {
	t.Helper()
	table := newTable()
	c := addOne(t, table)
	table.Next()
	table.Opened(&quoratepb.SessionOpened{Session: 7})
	offered := offerAll(table)
	if len(offered) != 1 || offered[0].Session != 7 || offered[0].Sequence != 1 || offered[0].Again {
		t.Fatalf("offered %v", offered)
	}
	if r := table.Next(); r != nil {
		t.Fatalf("what was offered leaves by the link, too: %v", r)
	}
	return table, c
}

// say has a member say a revision, zero for a refusal, on a view.
func say(table *Table, member, revision uint64, on termConfig) {
	sayHeld(table, member, on, said(revision, false))
}

func sayHeld(table *Table, member uint64, on termConfig, v *quoratepb.Verdict) {
	table.Verdicts(member, &quoratepb.Verdicts{
		TermConfig: on.message(), Leader: member == 1, Verdicts: []*quoratepb.Verdict{v},
	})
}

func answered(c *Call) bool { return c.told || c.ended }

func applied(table *Table) {
	table.Answer(&quoratepb.Answer{
		Session: 7, Sequence: 1, Verdict: quoratepb.Answer_VERDICT_APPLIED, Response: []byte("slow"),
	})
}

// TestTable_verdicts wins with the leader and three others of five, and then waits for the log before the session may end.
func TestTable_verdicts(t *testing.T) {
	table, c := offerOne(t)
	on := fiveVoters.termConfig
	for _, member := range []uint64{1, 2, 3} {
		say(table, member, 8, on)
	}
	if answered(c) {
		t.Fatal("three of five are enough")
	}
	say(table, 4, 8, on)
	if !answered(c) || c.Err != nil || string(c.Response) != "fast" || table.Stats() != (Stats{Writes: 1, Offered: 1, Won: 1}) {
		t.Fatalf("got %q, %v, %+v", c.Response, c.Err, table.Stats())
	}
	if table.Abandon(c) || !table.Settling() {
		t.Error("it can be given up after it was won")
	}
	if r := table.Farewell(); r != nil {
		t.Errorf("its session is given back: %v", r)
	}
	table.current = c.session
	applied(table)
	if table.Settling() || c.session.unresolved != 0 || string(c.Response) != "fast" {
		t.Errorf("after the log: %+v, %q", c.session, c.Response)
	}
	if r := table.Farewell(); r == nil || len(r.Retire) != 1 {
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
		said func(*Table)
	}{
		{name: "another revision", said: func(table *Table) { say(table, 4, 9, on) }},
		{name: "another payload", said: func(table *Table) { sayHeld(table, 4, on, said(8, true)) }},
		{name: "another term", said: func(table *Table) { say(table, 4, 8, term) }},
		{name: "another configuration", said: func(table *Table) { say(table, 4, 8, config) }},
		{name: "the same voter again", said: func(table *Table) { say(table, 3, 8, on) }},
		{name: "no voter", said: func(table *Table) { say(table, 6, 8, on) }},
		{name: "a refusal", said: func(table *Table) { say(table, 4, 0, on) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			table, c := offerOne(t)
			for _, member := range []uint64{1, 2, 3} {
				say(table, member, 8, on)
			}
			tc.said(table)
			if answered(c) {
				t.Fatal("won")
			}
			applied(table)
			if !answered(c) || string(c.Response) != "slow" || c.session.unresolved != 0 || c.session.early != 0 {
				t.Errorf("after the log: %q, %+v", c.Response, c.session)
			}
			say(table, 5, 8, on)
			if table.Stats().Won != 0 {
				t.Error("won after the log")
			}
		})
	}
}

// TestTable_streamLost sends the unanswered writes of the leader's stream again over the link, under the same id,
// decided or not.
func TestTable_streamLost(t *testing.T) {
	for _, won := range []bool{false, true} {
		table, c := offerOne(t)
		for member := uint64(1); won && member <= 4; member++ {
			say(table, member, 8, fiveVoters.termConfig)
		}
		table.Restart() // the link's stream is another one
		if r := table.Next(); r != nil {
			t.Errorf("won %v: the link sends what the leader's stream will answer: %v", won, r)
		}
		table.StreamLost(1)
		if got := offerAll(table); len(got) != 0 {
			t.Errorf("won %v: offered again: %v", won, got)
		}
		r := table.Next()
		if r == nil || len(r.Proposals) != 1 || !r.Proposals[0].Again || r.Proposals[0].Sequence != 1 ||
			len(r.Proposals[0].Request) == 0 {
			t.Fatalf("won %v: got %v, want it again", won, r)
		}
		if answered(c) != won {
			t.Errorf("won %v, but answered %v", won, answered(c))
		}
		applied(table)
		if !answered(c) || c.Err != nil || won != (string(c.Response) == "fast") || table.Settling() || c.session.unresolved != 0 {
			t.Errorf("won %v: %q, %v, %+v", won, c.Response, c.Err, c.session)
		}
	}
}

// TestTable_toldThenRefused keeps the session of a write that the voters decided open while members refuse to say what came of it,
// and lets it go once that was too often.
func TestTable_toldThenRefused(t *testing.T) {
	for _, ends := range []bool{false, true} {
		table, c := offerOne(t)
		for member := uint64(1); member <= 4; member++ {
			say(table, member, 8, fiveVoters.termConfig)
		}
		table.StreamLost(1)
		for asked := 0; ; asked++ {
			if r := table.Next(); r == nil || len(r.Proposals) != 1 || !r.Proposals[0].Again {
				t.Fatalf("asked for %d times, then %v", asked, r)
			}
			if asked == maxRefusals || ends && asked == 2 {
				break
			}
			refuse(table)
			if !table.Settling() || c.session.unresolved != 1 || !table.Pausing() {
				t.Fatalf("after %d refusals: %+v", asked+1, c.session)
			}
			table.Retry()
		}
		if ends {
			applied(table)
		} else {
			refuse(table)
		}
		if table.Settling() || c.session.unresolved != 0 || c.Err != nil || string(c.Response) != "fast" {
			t.Errorf("in the end: %q, %v, %+v", c.Response, c.Err, c.session)
		}
	}
}

func refuse(table *Table) {
	table.Answer(&quoratepb.Answer{
		Session: 7, Sequence: 1, Verdict: quoratepb.Answer_VERDICT_REFUSED, Code: uint32(codes.PermissionDenied),
	})
}

// TestTable_newTerm asks for what an earlier leader was offered, and still takes the verdicts of its time.
func TestTable_newTerm(t *testing.T) {
	table, c := offerOne(t)
	table.newTerm(3)
	if r := table.Next(); r != nil {
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
	if r := table.Next(); r == nil || len(r.Proposals) != 1 || !r.Proposals[0].Again {
		t.Errorf("got %v, want it again: the session must know", r)
	}
	applied(table)
	if table.Settling() {
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
			table, c := offerOne(t)
			for _, id := range tc.before {
				say(table, id, 0, fiveVoters.termConfig)
			}
			for range 2 * maxRefusals {
				table.Answer(tc.answer)
				if c.ended || c.session == nil {
					break
				}
				for _, id := range tc.between {
					say(table, id, 0, fiveVoters.termConfig)
				}
				table.Retry()
				if r := table.Next(); r == nil || len(r.Proposals) != 1 || !r.Proposals[0].Again {
					t.Fatalf("got %v, want it again", r)
				}
			}
			if renamed := c.session == nil; c.InDoubt == tc.certain || tc.certain && tc.answer == gone && !renamed {
				t.Errorf("got %v, renamed %v", c.Err, renamed)
			}
		})
	}
}

// TestTable_answer_abortedOffer offers a write anew under another name once it is known never to happen under the first.
func TestTable_answer_abortedOffer(t *testing.T) {
	table, c := offerOne(t)
	say(table, 2, 8, fiveVoters.termConfig)
	table.Answer(&quoratepb.Answer{Session: 7, Sequence: 1, Verdict: quoratepb.Answer_VERDICT_ABORTED})
	offered := offerAll(table)
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

// awayBy measures a round trip to a member, while the client's clock shows now and is ahead by so much.
func awayBy(trip time.Duration, now time.Time, ahead time.Duration) (r RoundTrip) {
	member := now.Add(-ahead + trip/2)
	r.Answered(now.Add(trip), r.Ping(now), uint64(member.UnixNano()))
	return r
}

// TestTable_due stamps for the farthest of those that are needed, by the clocks of the members, later each time. Otherwise
// members wait for the stamps of a client whose clock is ahead.
func TestTable_due(t *testing.T) {
	for _, ahead := range []time.Duration{0, 200 * time.Millisecond, -200 * time.Millisecond, time.Hour, -time.Hour} {
		table, streams := newTable(), map[uint64]Stream{}
		table.view = fiveVoters
		members := time.Unix(100000, 0)
		now := members.Add(ahead)
		for id, trip := range map[uint64]time.Duration{1: 20, 2: 10, 3: 60, 4: 40, 5: 200} {
			streams[id] = Stream{ID: id, Open: true, RoundTrip: awayBy(trip*time.Millisecond, now, ahead)}
		}
		streams[2] = Stream{ID: 2, Open: true, RoundTrip: awayBy(10*time.Millisecond, now, ahead+time.Minute)} // one is wrong
		first := table.due(now, streams, []uint64{2, 3, 4, 5})
		if wait := time.Unix(0, int64(first)).Sub(members); wait < 30*time.Millisecond || wait > 40*time.Millisecond {
			t.Errorf("a client that is %v ahead stamps %v ahead", ahead, wait)
		}
		if second := table.due(now, streams, []uint64{2, 3, 4, 5}); second <= first {
			t.Errorf("%d after %d", second, first)
		}
	}
}
