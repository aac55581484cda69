package filter_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
)

// Ensure that a message passes, or is dropped for the right reason, by what its receiver knows.
func TestReceiver_Judge(t *testing.T) {
	member := filter.Receiver{Term: 7, Leader: 1, KnowsSender: true}
	nonMember := member
	nonMember.KnowsSender = false
	removed := member
	removed.SenderRemoved = true
	unled := removed
	unled.Leader, unled.Unled = consensus.NoMember, true
	between := nonMember
	between.Leader = consensus.NoMember
	alone := filter.Receiver{Term: 7, Unled: true}
	joins := filter.Receiver{Joins: true}
	heartbeat := func(from consensus.MemberID, term consensus.Term) consensus.Message {
		return consensus.Message{Kind: consensus.MsgHeartbeat, From: from, Term: term}
	}
	gap := consensus.Message{Kind: consensus.MsgAppend, From: 1, Term: 7, Prev: consensus.Position{Index: 3, Term: 7},
		Entries: []consensus.Entry{{Index: 5, Term: 7}}}
	misplaced := heartbeat(1, 7)
	misplaced.Entries = []consensus.Entry{{Index: 1, Term: 7, Kind: consensus.EntryCommand}}
	many := consensus.Message{Kind: consensus.MsgOrphans, From: 2, Term: 7,
		Verdicts: make([]consensus.Verdict, consensus.MaxOrphans+1)}
	const passes = filter.Reason(255)
	for _, x := range []struct {
		name string
		at   filter.Receiver
		m    consensus.Message
		want filter.Reason
	}{
		{"the leader's heartbeat", member, heartbeat(1, 7), passes},
		{"a second leader of the term", member, heartbeat(2, 7), filter.Leader},
		{"a leader of the next term", member, heartbeat(2, 8), passes},
		{"a term that no election reaches", member, heartbeat(2, 1<<40), filter.TermJump},
		{"the same, to a member that joins", joins, heartbeat(2, 1<<40), passes},
		{"a number beyond reason", member, heartbeat(2, filter.MaxNumber+1), filter.Malformed},
		{"a gap in the entries", member, gap, filter.Malformed},
		{"entries in what is no append", member, misplaced, filter.Malformed},
		{"a question about too many proposals", member, many, filter.Malformed},
		{"a kind that nobody sends", member, consensus.Message{From: 2, Term: 7}, filter.Malformed},
		{"a non-member that leads a later term, while the leader is heard", nonMember, heartbeat(9, 8), filter.NonMember},
		{"the same, while no leader is known", alone, heartbeat(9, 8), passes},
		{"the same, in an election", between, heartbeat(9, 8), filter.NonMember},
		{"a non-member that asks for a vote", nonMember, consensus.Message{Kind: consensus.MsgVote, From: 9, Term: 8},
			filter.NonMember},
		{"the same, in an election", between, consensus.Message{Kind: consensus.MsgVote, From: 9, Term: 8}, filter.NonMember},
		{"the same, while no leader was heard for long", alone, consensus.Message{Kind: consensus.MsgVote, From: 9, Term: 8}, passes},
		{"a non-member that says that a leader wants the vote", alone,
			consensus.Message{Kind: consensus.MsgVote, From: 9, Term: 8, Force: true}, filter.NonMember},
		{"a removed member that leads a later term, while another leader is heard", removed, heartbeat(9, 8), filter.NonMember},
		{"the same, while none is heard", unled, heartbeat(9, 8), passes},
		{"a removed leader that is heard", removed, heartbeat(1, 7), passes},
		{"a member that says so", member, consensus.Message{Kind: consensus.MsgVote, From: 2, Term: 8, Force: true}, passes},
		{"a non-member that reads", nonMember, consensus.Message{Kind: consensus.MsgRead, From: 9, Term: 7}, filter.NonMember},
		{"a non-member that says one was removed", nonMember, consensus.Message{Kind: consensus.MsgRemoved, From: 9, Term: 7},
			filter.NonMember},
		{"the same, in an election", between, consensus.Message{Kind: consensus.MsgRemoved, From: 9, Term: 7}, filter.NonMember},
		{"the same, while no leader was heard for long", alone, consensus.Message{Kind: consensus.MsgRemoved, From: 9, Term: 7},
			passes},
		{"a removed member that says so", removed, consensus.Message{Kind: consensus.MsgRemoved, From: 9, Term: 7}, filter.NonMember},
	} {
		got, dropped := x.at.Judge(&x.m)
		if !dropped {
			got = passes
		}
		if got != x.want {
			t.Errorf("%s: got reason %d, want %d", x.name, got, x.want)
		}
	}
}
