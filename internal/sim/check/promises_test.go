package check_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/check"
)

// Ensure that a promise may be as high as the log and the records reached before the entries that are written with it, one of
// which replaces a record, and no higher.
func TestSuite_promisedOrder(t *testing.T) {
	const member = 4
	proposal := func(sequence uint64) consensus.ProposalID {
		return consensus.ProposalID{Session: consensus.SessionID{Member: 1, Number: 1}, Sequence: sequence}
	}
	record := func(sequence, revision uint64) consensus.WitnessRecord {
		r := consensus.Record{Attempt: consensus.Attempt{Proposal: proposal(sequence), Revision: revision}, Term: 1}
		return consensus.WitnessRecord{Attempt: consensus.AttemptIDOf(r.Attempt), Payload: consensus.AppendRecord(nil, &r)}
	}
	for _, tc := range []struct {
		revision uint64
		want     bool
	}{
		// The log reaches 3 and 4, because its second entry may take no revision. Record 9, promised 3 before them, may come
		// after: at 5, and 6 is next.
		{revision: 6}, {revision: 7, want: true},
	} {
		s := check.NewSuite(func() time.Duration { return 0 }, consensus.SnapshotMeta{})
		write := func(applied consensus.Index, b *consensus.Batch) {
			s.Recording(member, 1, applied, b)
			s.Appended(member, b.Entries)
		}
		write(0, &consensus.Batch{Entries: []consensus.Entry{put(1, "a", "1")}})
		s.Applied(member, []consensus.Entry{put(1, "a", "1")}, []kv.Result{putResult(2)})
		write(1, &consensus.Batch{Entries: []consensus.Entry{put(2, "a", "2"), put(3, "a", "3")},
			Witness: []consensus.WitnessRecord{record(9, 3)}})
		decided := put(4, "b", "1")
		decided.Proposal, decided.ExactRevision, decided.Answered = proposal(9), 4, member
		write(1, &consensus.Batch{Entries: []consensus.Entry{decided}, Witness: []consensus.WitnessRecord{record(10, tc.revision)}})
		if s.Failed() != tc.want {
			t.Errorf("revision %d: violations %v, want one: %v", tc.revision, s.Violations, tc.want)
		}
	}
}

// Ensure that a promise may count the record of an attempt besides an entry of another attempt, once that entry was passed
// over.
func TestSuite_promisedOrder_passedOver(t *testing.T) {
	const member = 4
	id := consensus.ProposalID{Session: consensus.SessionID{Member: 1, Number: 1}, Sequence: 9}
	witness := func(sequence, revision uint64) []consensus.WitnessRecord {
		r := consensus.Record{Attempt: consensus.Attempt{Proposal: id, Revision: revision}, Term: 1}
		r.Proposal.Sequence = sequence
		return []consensus.WitnessRecord{{Attempt: consensus.AttemptIDOf(r.Attempt), Payload: consensus.AppendRecord(nil, &r)}}
	}
	for _, tc := range []struct {
		applied  consensus.Index
		revision uint64
		want     bool
	}{
		// The log reaches 3, and so does record 9. An entry of its other attempt is logged, so that the record does not come
		// after it.
		{applied: 1, revision: 4}, {applied: 1, revision: 5, want: true}, {applied: 2, revision: 5, want: true},
		// The entry was passed over, because its revision was taken: record 9 may come at 4.
		{applied: 3, revision: 4}, {applied: 3, revision: 5}, {applied: 3, revision: 6, want: true},
	} {
		s := check.NewSuite(func() time.Duration { return 0 }, consensus.SnapshotMeta{})
		write := func(applied consensus.Index, b *consensus.Batch) {
			s.Recording(member, 1, applied, b)
			s.Appended(member, b.Entries)
		}
		passed := put(3, "b", "1")
		passed.Proposal, passed.ExactRevision, passed.Answered = id, 2, member
		entries := []consensus.Entry{put(1, "a", "1"), put(2, "a", "2"), passed}
		write(0, &consensus.Batch{Entries: entries[:1]})
		s.Applied(member, entries, []kv.Result{
			putResult(2), putResult(3), {Revision: 3, Err: kv.ErrSkipped},
		})
		write(1, &consensus.Batch{Entries: entries[1:], Witness: witness(9, 3)})
		write(tc.applied, &consensus.Batch{Witness: witness(10, tc.revision)})
		if s.Failed() != tc.want {
			t.Errorf("applied %d, revision %d: violations %v, want one: %v", tc.applied, tc.revision, s.Violations, tc.want)
		}
	}
}
