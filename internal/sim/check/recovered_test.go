package check_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/check"
)

// Ensure that a recovered entry, with its payload, must have been held by a recovery quorum under one configuration. Entries
// that the leader logs after its no-op are its own.
func TestSuite_recovered(t *testing.T) {
	id := consensus.ProposalID{Session: consensus.SessionID{Member: 1, Number: 1<<63 | 1}, Sequence: 9} // of a native client
	first := consensus.FoundingID()
	second := consensus.ConfigID{Index: 7, Term: 1}
	record := func(config consensus.ConfigID, payload string) *consensus.Batch {
		r := consensus.Record{Attempt: consensus.AttemptOf(id, 2, []byte(payload)), Term: 1, Config: config, Payload: []byte(payload)}
		return &consensus.Batch{Witness: []consensus.WitnessRecord{{
			Attempt: consensus.AttemptIDOf(r.Attempt), Payload: consensus.AppendRecord(nil, &r),
		}}}
	}
	exact := consensus.Entry{Index: 2, Term: 2, Kind: consensus.EntryCommand, Proposal: id, ExactRevision: 2, Payload: []byte("a")}
	noop := consensus.Entry{Index: 3, Term: 2, Kind: consensus.EntryNoop}
	answered := exact
	answered.Term, answered.Answered = 1, 3
	for name, tc := range map[string]struct {
		held    map[consensus.MemberID]*consensus.Batch
		entries []consensus.Entry
		want    bool
	}{
		"enough": {held: map[consensus.MemberID]*consensus.Batch{1: record(first, "a"), 2: record(first, "a")},
			entries: []consensus.Entry{exact, noop}},
		"too few": {held: map[consensus.MemberID]*consensus.Batch{1: record(first, "a")}, entries: []consensus.Entry{exact}, want: true},
		"another payload": {held: map[consensus.MemberID]*consensus.Batch{1: record(first, "a"), 2: record(first, "b")},
			entries: []consensus.Entry{exact}, want: true},
		"another configuration": {held: map[consensus.MemberID]*consensus.Batch{1: record(first, "a"), 2: record(second, "a")},
			entries: []consensus.Entry{exact}, want: true},
		"nobody":          {entries: []consensus.Entry{exact}, want: true},
		"after the no-op": {entries: []consensus.Entry{noop, exact}},
		"the leader before answered it": {held: map[consensus.MemberID]*consensus.Batch{
			1: record(first, "a"), 3: {Entries: []consensus.Entry{{Index: 1, Term: 1, Kind: consensus.EntryNoop}, answered}},
		}, entries: []consensus.Entry{exact}},
	} {
		s := check.NewSuite(func() time.Duration { return 0 }, consensus.SnapshotMeta{})
		config := consensus.Config{Voters: []consensus.MemberID{1, 2, 3}}
		s.Configured(1, first, &config)
		s.Configured(1, second, &config)
		for _, member := range []consensus.MemberID{1, 2, 3} {
			if b := tc.held[member]; b != nil {
				s.Recording(member, 1, 0, b)
			}
		}
		s.Recording(2, 2, 0, &consensus.Batch{Entries: tc.entries})
		s.Recording(1, 2, 0, &consensus.Batch{Entries: tc.entries})
		if s.Failed() != tc.want {
			t.Errorf("%s: violations %v, want one: %v", name, s.Violations, tc.want)
		}
	}
}
