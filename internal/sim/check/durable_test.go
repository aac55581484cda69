package check_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/check"
)

// story returns the violations that the checkers report in a story.
func story(f func(s *check.Suite)) []check.Violation {
	s := check.NewSuite(func() time.Duration { return 0 }, consensus.SnapshotMeta{})
	f(s)
	return s.Violations
}

// logOf returns puts at 1, 2, ... of the given terms.
func logOf(terms ...consensus.Term) []consensus.Entry {
	entries := make([]consensus.Entry, len(terms))
	for i, term := range terms {
		entries[i] = put(consensus.Index(i+1), "a", "1")
		entries[i].Term = term
	}
	return entries
}

// truncatedWhileWriting is a member whose log is replaced by one of term 2 while two requests of one write are under way.
func truncatedWhileWriting(s *check.Suite) (old []consensus.Entry) {
	old = logOf(1, 1, 1)
	s.Entered(1, 1)
	s.Appended(1, old[:2])
	s.Appended(1, old[2:])
	s.Entered(1, 2)
	s.Appended(1, logOf(2, 2, 2))
	s.Synced(1, &consensus.HardState{Term: 1}, old[:2], nil)
	s.Synced(1, nil, old[2:], nil)
	return old
}

// replacedByStore is a member whose log is on disk, and is replaced by a snapshot in term 2.
func replacedByStore(s *check.Suite) {
	s.Applied(2, logOf(1, 2), []kv.Result{putResult(2), putResult(3)})
	s.Entered(1, 1)
	s.Appended(1, logOf(1, 1, 1))
	s.Synced(1, &consensus.HardState{Term: 1}, logOf(1, 1, 1), nil)
	s.Entered(1, 2)
	s.Synced(1, &consensus.HardState{Term: 2}, nil, nil)
	s.Rebased(1, consensus.SnapshotMeta{Position: consensus.Position{Index: 2, Term: 2}}, true)
}

func TestSuite_Recovered(t *testing.T) {
	installed := consensus.SnapshotMeta{Position: consensus.Position{Index: 2, Term: 2}}
	for _, tc := range []struct {
		what  string
		alarm bool
		story func(s *check.Suite)
	}{
		{"what was synced is there, though memory had replaced it", false, func(s *check.Suite) {
			old := truncatedWhileWriting(s)
			s.Recovered(1, consensus.HardState{Term: 1}, consensus.SnapshotMeta{}, old, 0)
		}},
		{"the write that was on its way is there", false, func(s *check.Suite) {
			truncatedWhileWriting(s)
			s.Recovered(1, consensus.HardState{Term: 2}, consensus.SnapshotMeta{}, logOf(2, 2, 2), 0)
		}},
		{"a part of the write that was on its way is there", false, func(s *check.Suite) {
			truncatedWhileWriting(s)
			s.Recovered(1, consensus.HardState{Term: 2}, consensus.SnapshotMeta{}, logOf(2), 0)
		}},
		{"the end of what was synced is missing", true, func(s *check.Suite) {
			old := truncatedWhileWriting(s)
			s.Recovered(1, consensus.HardState{Term: 1}, consensus.SnapshotMeta{}, old[:2], 0)
		}},
		{"another entry is there", true, func(s *check.Suite) {
			truncatedWhileWriting(s)
			s.Recovered(1, consensus.HardState{Term: 1}, consensus.SnapshotMeta{}, logOf(1, 1, 2), 0)
		}},
		{"a store was installed below the end of a log that conflicts with it", false, func(s *check.Suite) {
			chosen := logOf(1, 2)
			s.Applied(2, chosen, []kv.Result{putResult(2), putResult(3)})
			s.Appended(1, logOf(1, 1, 1))
			s.Synced(1, &consensus.HardState{Term: 1}, logOf(1, 1, 1), nil)
			s.Recovered(1, consensus.HardState{Term: 2}, installed, nil, 2)
		}},
		{"a log is gone, and no committed snapshot explains it", true, func(s *check.Suite) {
			s.Appended(1, logOf(1, 1, 1))
			s.Synced(1, &consensus.HardState{Term: 1}, logOf(1, 1, 1), nil)
			s.Recovered(1, consensus.HardState{Term: 2}, installed, nil, 2)
		}},
	} {
		expect(t, tc.what, story(tc.story), tc.alarm, "durable-before-ack")
	}
}

func TestSuite_Sent_appendReply(t *testing.T) {
	reply := func(term consensus.Term, index consensus.Index) []consensus.Message {
		return []consensus.Message{{Kind: consensus.MsgAppendReply, From: 1, To: 2, Term: term, Match: consensus.Position{Index: index}}}
	}
	for _, tc := range []struct {
		what, property string
		alarm          bool
		story          func(s *check.Suite)
	}{
		{"nothing of the new log is on disk", "durable-before-ack", true, func(s *check.Suite) {
			truncatedWhileWriting(s)
			s.Sent(reply(2, 2))
		}},
		{"a part of the new log is on disk", "durable-before-ack", true, func(s *check.Suite) {
			truncatedWhileWriting(s)
			s.Synced(1, &consensus.HardState{Term: 2}, logOf(2, 2), nil)
			s.Sent(reply(2, 3))
		}},
		{"the new log is on disk", "durable-before-ack", false, func(s *check.Suite) {
			truncatedWhileWriting(s)
			s.Synced(1, &consensus.HardState{Term: 2}, logOf(2, 2, 2), nil)
			s.Sent(reply(2, 3))
		}},
		{"a snapshot has replaced what was acknowledged in an earlier term", "durable-before-ack", false, func(s *check.Suite) {
			replacedByStore(s)
			s.Sent(reply(1, 3))
		}},
		{"a snapshot has replaced what is acknowledged in its term", "durable-before-ack", true, func(s *check.Suite) {
			replacedByStore(s)
			s.Sent(reply(2, 3))
		}},
		{"the leader that is told has another entry there", "log-matching", true, func(s *check.Suite) {
			s.Entered(1, 3)
			s.Entered(2, 3)
			s.Appended(1, logOf(1, 1))
			s.Synced(1, &consensus.HardState{Term: 3}, logOf(1, 1), nil)
			s.Appended(2, logOf(1, 3))
			s.Leader(2, 3)
			s.Sent(reply(3, 2))
		}},
	} {
		expect(t, tc.what, story(tc.story), tc.alarm, tc.property)
	}
}

func expect(t *testing.T, what string, got []check.Violation, alarm bool, property string) {
	t.Helper()
	if alarm != (len(got) > 0) || alarm && got[0].Property != property {
		t.Errorf("%s: got %v, want an alarm: %t", what, got, alarm)
	}
}
