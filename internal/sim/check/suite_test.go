package check_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/sim/check"
)

func command(index consensus.Index, c *kv.Command) consensus.Entry {
	return consensus.Entry{Index: index, Term: 1, Kind: consensus.EntryCommand, Payload: c.Append(nil)}
}

func put(index consensus.Index, key, value string) consensus.Entry {
	return command(index, &kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: []byte(value)}})
}

func putResult(revision kv.Revision) kv.Result {
	return kv.Result{Revision: revision, Put: &kv.PutResult{}}
}

// replace is an entry that replaces the voters of the first configuration.
func replace(index consensus.Index, protocol consensus.Protocol, voters ...consensus.MemberID) consensus.Entry {
	change := consensus.ConfigChange{Protocol: protocol, Config: consensus.Config{Voters: voters}, Tombs: []consensus.MemberID{3}}
	for _, id := range voters {
		change.Config.Members = append(change.Config.Members, consensus.Member{ID: id})
	}
	return consensus.Entry{
		Index: index, Term: 1, Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil, &change),
	}
}

// appends is an append of leader 1 to member 2.
func appends(from, to consensus.Index) *consensus.Message {
	m := &consensus.Message{Kind: consensus.MsgAppend, From: 1, To: 2, Term: 1}
	for index := from; index <= to; index++ {
		m.Entries = append(m.Entries, put(index, "a", "1"))
	}
	return m
}

// Ensure that entries that were lost, or dropped by a member that restarts, may be sent again, and are counted.
func TestSentOnce_lost(t *testing.T) {
	s := check.NewSuite(func() time.Duration { return 0 }, consensus.SnapshotMeta{})
	o := &s.SentOnce
	o.Leaves(s, appends(1, 2))
	o.Lost(appends(1, 2))
	o.Leaves(s, appends(1, 2))
	again := o.Again
	o.Started(2)
	o.Leaves(s, appends(1, 2))
	if s.Failed() || o.InVain != 0 || again == 0 || o.Again != again || o.Bytes != 3*again {
		t.Errorf("%v, %+v", s.Violations, o)
	}
}

// Ensure that where a message, or an answer, overtakes another one, an entry may be sent in vain once, and once more for each
// overtaking since it was sent first, and no more often.
func TestSentOnce_overtaken(t *testing.T) {
	for _, from := range []consensus.MemberID{1, 2} {
		s := check.NewSuite(func() time.Duration { return 0 }, consensus.SnapshotMeta{})
		o := &s.SentOnce
		o.Overtaken(from, 3-from, 1)
		o.Leaves(s, appends(1, 3))
		o.Came(appends(1, 3))
		s.Recovered(2, consensus.HardState{}, consensus.SnapshotMeta{}, nil, 0)
		s.Appended(2, appends(1, 3).Entries)
		o.Leaves(s, appends(1, 3))
		o.Overtaken(from, 3-from, 1)
		o.Leaves(s, appends(1, 3))
		if s.Failed() || o.InVain == 0 {
			t.Errorf("twice in vain: %v, %+v", s.Violations, o)
		}
		if o.Leaves(s, appends(1, 3)); !s.Failed() {
			t.Errorf("a third time is not noticed: %+v", o)
		}
	}
}

// Ensure that lost entries may be sent again to a member that had them before the stream began, but no third time.
func TestSentOnce_lostAndHad(t *testing.T) {
	s := check.NewSuite(func() time.Duration { return 0 }, consensus.SnapshotMeta{})
	o := &s.SentOnce
	s.Recovered(2, consensus.HardState{}, consensus.SnapshotMeta{}, nil, 0)
	s.Appended(2, appends(1, 3).Entries)
	o.Leaves(s, appends(1, 3))
	o.Lost(appends(1, 3))
	o.Leaves(s, appends(2, 2))
	o.Came(appends(2, 2))
	o.Leaves(s, appends(1, 1))
	o.Leaves(s, appends(3, 3))
	if s.Failed() || o.InVain != 0 || o.Again == 0 {
		t.Errorf("what was lost is sent again: %v, %+v", s.Violations, o)
	}
	if o.Leaves(s, appends(2, 2)); !s.Failed() || o.InVain == 0 {
		t.Errorf("the same once more is not noticed: %+v", o)
	}
}

// Ensure that a message that is reported lost twice excuses one repetition more, not two.
func TestSentOnce_lostTwice(t *testing.T) {
	s := check.NewSuite(func() time.Duration { return 0 }, consensus.SnapshotMeta{})
	o := &s.SentOnce
	o.Leaves(s, appends(1, 2))
	o.Lost(appends(1, 2))
	o.Leaves(s, appends(1, 1))
	o.Lost(appends(1, 2))
	if s.Failed() || o.InVain != 0 {
		t.Errorf("what was lost is sent again: %v, %+v", s.Violations, o)
	}
	if o.Leaves(s, appends(1, 1)); !s.Failed() {
		t.Errorf("the same once more is not noticed: %+v", o)
	}
}

// Ensure that each kind of violation is noticed under its name, by a story as short as possible.
func TestSuite_notices(t *testing.T) {
	config := consensus.Config{
		Voters: []consensus.MemberID{1, 2, 3}, Members: []consensus.Member{{ID: 1}, {ID: 2}, {ID: 3}},
	}
	first := consensus.SnapshotMeta{Config: config}
	vote := func(to consensus.MemberID) []consensus.Message {
		return []consensus.Message{{Kind: consensus.MsgVoteReply, From: 1, To: to, Term: 2}}
	}
	event := func(key, value string, revision kv.Revision) kv.Event {
		return kv.Event{KV: kv.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: revision,
			CreateRevision: revision, Version: 1}}
	}
	for _, tc := range []struct {
		want  string
		story func(s *check.Suite)
	}{
		{"election-safety", func(s *check.Suite) {
			s.Leader(1, 5)
			s.Leader(2, 5)
		}},
		{"sent-once", func(s *check.Suite) { // under way
			s.SentOnce.Leaves(s, appends(1, 2))
			s.SentOnce.Leaves(s, appends(2, 2))
		}},
		{"sent-once", func(s *check.Suite) { // arrived
			s.SentOnce.Leaves(s, appends(1, 2))
			s.SentOnce.Came(appends(1, 2))
			s.Recovered(2, consensus.HardState{}, first, nil, 0)
			s.Appended(2, appends(1, 2).Entries)
			s.SentOnce.Leaves(s, appends(1, 1))
		}},
		{"chain", func(s *check.Suite) {
			s.Chained(1, 7, 0xa)
			s.Chained(2, 6, 0xb)
			s.Chained(2, 7, 0xc)
		}},
		{"durable-before-ack", func(s *check.Suite) { s.Sent(vote(2)) }},
		{"durable-before-ack", func(s *check.Suite) {
			s.Synced(1, &consensus.HardState{Term: 2, Vote: 2}, nil, nil)
			s.Sent(vote(2))
			s.Synced(1, &consensus.HardState{Term: 2, Vote: 3}, nil, nil)
		}},
		{"durable-before-ack", func(s *check.Suite) {
			entries := []consensus.Entry{put(1, "a", "1")}
			s.Appended(1, entries)
			s.Synced(1, nil, entries, nil)
			s.Recovered(1, consensus.HardState{}, consensus.SnapshotMeta{}, nil, 0)
		}},
		{"log-matching", func(s *check.Suite) {
			s.Appended(1, []consensus.Entry{put(1, "a", "1")})
			s.Appended(2, []consensus.Entry{put(1, "a", "2")})
		}},
		{"leader-completeness", func(s *check.Suite) {
			entries := []consensus.Entry{put(1, "a", "1")}
			s.Appended(1, entries)
			s.Applied(1, entries, []kv.Result{putResult(2)})
			s.Leader(2, 3)
		}},
		{"state-machine", func(s *check.Suite) {
			s.Applied(1, []consensus.Entry{put(1, "a", "1")}, []kv.Result{putResult(3)})
		}},
		{"state-machine", func(s *check.Suite) {
			s.Hashed(1, 5, 0, 77)
			s.Hashed(2, 5, 0, 78)
		}},
		{"revisions", func(s *check.Suite) {
			s.Applied(1, []consensus.Entry{put(1, "a", "1")}, []kv.Result{putResult(2)})
			s.Published(1, 1, 3)
		}},
		{"acknowledged", func(s *check.Suite) {
			s.Applied(1, []consensus.Entry{put(1, "a", "1")}, []kv.Result{putResult(2)})
			s.Acks.Add("a", "2", 2)
		}},
		{"real-time-order", func(s *check.Suite) {
			s.Wrote(0, 10, 5, "a", true)
			s.Wrote(20, 30, 4, "b", true)
		}},
		{"linearizable", func(s *check.Suite) {
			s.Record(check.Operation{Kind: check.OpPut, Key: "a", Value: "1", Begin: 0, End: 10, Answered: true, Revision: 2})
			s.Record(check.Operation{Kind: check.OpGet, Key: "a", Begin: 20, End: 30, Answered: true})
		}},
		{"watch", func(s *check.Suite) {
			s.Applied(1, []consensus.Entry{put(1, "a", "1"), put(2, "a2", "2")},
				[]kv.Result{putResult(2), putResult(3)})
			w := s.NewWatch("w", []byte("a"), []byte("b"), 1)
			w.Delivered([]kv.Event{event("a2", "2", 3)})
		}},
		{"watch", func(s *check.Suite) {
			s.Applied(1, []consensus.Entry{put(1, "a", "1")}, []kv.Result{putResult(2)})
			w := s.NewWatch("w", []byte("a"), nil, 1)
			w.Delivered([]kv.Event{event("a", "1", 2)})
			w.Delivered([]kv.Event{event("a", "1", 2)})
		}},
		{"lease-early", func(s *check.Suite) {
			s.Leases.Renewed(7, 0, 10*time.Second)
			grant := command(1, &kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 7, TTLSeconds: 10}})
			end := command(2, &kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 7}})
			session := consensus.SessionID{Member: 1, Number: 1}
			open := command(1, &kv.Command{SessionOpen: &kv.SessionOpenOp{Member: 1, Number: 1}})
			open.Proposal = consensus.ProposalID{Session: session}
			grant.Index, grant.Proposal = 2, consensus.ProposalID{Session: session, Sequence: 1}
			end.Index, end.Proposal = 3, consensus.ProposalID{Session: session, Sequence: 2}
			s.Applied(1, []consensus.Entry{open, grant, end}, []kv.Result{{Revision: 1},
				{Revision: 1, Lease: &kv.LeaseResult{ID: 7, TTLSeconds: 10}}, {Revision: 1}})
		}},
		{"soak", func(s *check.Suite) {
			s.Recovered(1, consensus.HardState{}, first, nil, 0)
			s.Soaks.Counted = time.Minute
			session, all := consensus.SessionID{Member: 1, Number: 1}, kv.LevelView{IDs: []uint64{1, 2, 3}}
			soaks := kv.LevelView{IDs: all.IDs, Generation: 1}
			var entries []consensus.Entry
			for i, c := range []kv.Command{
				{SessionOpen: &kv.SessionOpenOp{Member: 1, Number: 1}}, {Publish: &kv.PublishOp{Member: 1, Level: nextlevel.Level}},
				{Publish: &kv.PublishOp{Member: 2, Level: nextlevel.Level}}, {Publish: &kv.PublishOp{Member: 3, Level: nextlevel.Level}},
				{Soak: &kv.SoakOp{Level: nextlevel.Level, Of: all}}, {Soak: &kv.SoakOp{Level: nextlevel.Level, Seconds: 3, Of: soaks}},
			} {
				e := command(consensus.Index(i+1), &c)
				e.Proposal = consensus.ProposalID{Session: session, Sequence: uint64(i)}
				entries = append(entries, e)
			}
			results := slices.Repeat([]kv.Result{{Revision: 1}}, len(entries))
			s.Applied(1, entries[:5], results[:5])
			s.Soaks.Counted += time.Second
			s.Applied(1, entries[5:], results[5:])
		}},
		{"configuration", func(s *check.Suite) {
			s.Recovered(1, consensus.HardState{}, first, nil, 0)
			s.Configured(1, consensus.ConfigID{Index: 9, Term: 1}, &config)
			s.Stepped(1)
		}},
		{"configuration", func(s *check.Suite) {
			s.Recovered(1, consensus.HardState{}, first, nil, 0)
			s.Appended(1, []consensus.Entry{replace(1, consensus.ProtocolSingle, 1, 2, 4)})
			s.Appended(1, []consensus.Entry{replace(2, consensus.ProtocolJoint, 1, 2, 3)})
		}},
		{"configuration", func(s *check.Suite) {
			s.Recovered(1, consensus.HardState{}, first, nil, 0)
			s.Leader(1, 1)
			s.Appended(1, []consensus.Entry{replace(1, consensus.ProtocolSingle, 1, 2)})
			s.Proposed(1, consensus.Position{Index: 1, Term: 1}, 0)
		}},
		{"settled", func(s *check.Suite) {
			s.Recovered(1, consensus.HardState{}, first, nil, 0)
			s.Appended(1, []consensus.Entry{replace(1, consensus.ProtocolSingle, 1, 2)})
			s.Settled(1, consensus.ConfigID{Index: 1, Term: 1}, 1)
		}},
		{"settled", func(s *check.Suite) { s.Removed(3) }},
		{"election-safety", func(s *check.Suite) {
			s.Recovered(1, consensus.HardState{}, first, nil, 0)
			s.Configured(1, consensus.ConfigID{}, &config)
			s.Leader(1, 1)
			s.Stepped(1)
		}},
		{"commit-rule", func(s *check.Suite) {
			s.Recovered(1, consensus.HardState{Term: 1, Vote: 1}, consensus.SnapshotMeta{Config: config}, nil, 0)
			s.Appended(1, []consensus.Entry{put(1, "a", "1")})
			s.Sent([]consensus.Message{{Kind: consensus.MsgHeartbeat, From: 1, To: 2, Term: 1, Commit: 1}})
			s.Stepped(1)
		}},
	} {
		s := check.NewSuite(func() time.Duration { return time.Second }, consensus.SnapshotMeta{Config: config})
		tc.story(s)
		s.Finish()
		if len(s.Violations) == 0 || s.Violations[0].Property != tc.want {
			t.Errorf("%s: got %v", tc.want, s.Violations)
		}
	}
}

// Ensure that members whose state machine has no model here are judged by what they apply, and by what the fast path promised.
func TestSuite_Executed(t *testing.T) {
	at := func(index consensus.Index, term consensus.Term) consensus.Entry {
		e := put(index, "a", "1")
		e.Term, e.Proposal.Session.Member, e.Proposal.Sequence = term, 7, uint64(index)
		return e
	}
	result := func(revision kv.Revision, err error) []kv.Result { return []kv.Result{{Revision: revision, Err: err}} }
	decided := func(revision uint64) []tally.Decision {
		return []tally.Decision{{
			Attempt: consensus.Attempt{Proposal: at(1, 1).Proposal, Revision: revision},
			Reply:   result(kv.Revision(revision), nil)[0].Append(nil),
		}}
	}
	for _, tc := range []struct {
		name, property string
		play           func(s *check.Suite)
	}{
		{"the same by two members", "", func(s *check.Suite) {
			s.Executed(1, []consensus.Entry{at(1, 1)}, result(1, nil))
			s.Executed(2, []consensus.Entry{at(1, 1)}, result(1, nil))
		}},
		{"entries that differ", "state-machine", func(s *check.Suite) {
			s.Executed(1, []consensus.Entry{at(1, 1)}, result(1, nil))
			s.Executed(2, []consensus.Entry{at(1, 2)}, result(1, nil))
		}},
		{"a promise kept", "", func(s *check.Suite) {
			s.FastDecided(1, decided(1))
			s.Executed(1, []consensus.Entry{at(1, 1)}, result(1, nil))
		}},
		{"a promise of another revision", "fast-path", func(s *check.Suite) {
			s.FastDecided(1, decided(2))
			s.Executed(1, []consensus.Entry{at(1, 1)}, result(1, nil))
		}},
		{"a promise passed over", "fast-path", func(s *check.Suite) {
			s.FastDecided(1, decided(1))
			s.Executed(1, []consensus.Entry{at(1, 1)}, result(0, kv.ErrSkipped))
		}},
	} {
		s := check.NewSuite(func() time.Duration { return 0 }, consensus.SnapshotMeta{})
		tc.play(s)
		s.Finish()
		if s.Failed() != (tc.property != "") || s.Failed() && s.Violations[0].Property != tc.property {
			t.Errorf("%s: %v, want %q", tc.name, s.Violations, tc.property)
		}
	}
}
