package consensus_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/consensus"
)

func someRecords() []consensus.Record {
	record := func(sequence, revision uint64, payload string) consensus.Record {
		return consensus.Record{
			Attempt: consensus.Attempt{
				Proposal: consensus.ProposalID{Session: consensus.SessionID{Member: 3, Number: 1 << 40}, Sequence: sequence},
				Revision: revision,
			},
			Term: 5, Config: consensus.ConfigID{Index: 7, Term: 2}, Payload: []byte(payload),
		}
	}
	// The second attempt of one proposal is a record of its own.
	return []consensus.Record{record(1, 10, "one"), record(2, 11, strings.Repeat("x", 300)), record(1, 12, "one")}
}

func keepAll(records []consensus.Record) []consensus.RecordChange {
	changes := make([]consensus.RecordChange, len(records))
	for i := range records {
		changes[i].Record = records[i]
	}
	return changes
}

func TestWitnessRecords_roundTrip(t *testing.T) {
	records := someRecords()
	changes := keepAll(records)
	held := consensus.WitnessRecords(changes)
	got, err := consensus.DecodeRecords(held)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(records, got); diff != "" {
		t.Errorf("what comes back is different:\n%s", diff)
	}
	if held[0].Attempt == held[2].Attempt {
		t.Error("two attempts of one proposal are taken for one")
	}
	changes[0].Forget = true
	changes[0].Record = consensus.Record{Attempt: records[0].Attempt}
	forgotten := consensus.WitnessRecords(changes[:1])
	if len(forgotten) != 1 || !forgotten[0].Forget || forgotten[0].Attempt != held[0].Attempt || forgotten[0].Payload != nil {
		t.Errorf("got %+v, want the attempt forgotten", forgotten)
	}
	if consensus.WitnessRecords(nil) != nil {
		t.Error("no changes are written as some")
	}
}

func TestDecodeRecords_damaged(t *testing.T) {
	records := someRecords()
	for name, spoil := range map[string]func(r *consensus.WitnessRecord){
		"cut":              func(r *consensus.WitnessRecord) { r.Payload = r.Payload[:len(r.Payload)-1] },
		"empty":            func(r *consensus.WitnessRecord) { r.Payload = nil },
		"longer":           func(r *consensus.WitnessRecord) { r.Payload = append(slices.Clone(r.Payload), 0) },
		"another attempt":  func(r *consensus.WitnessRecord) { r.Attempt = consensus.AttemptIDOf(records[2].Attempt) },
		"another revision": func(r *consensus.WitnessRecord) { r.Attempt[len(r.Attempt)-1] ^= 1 },
	} {
		held := consensus.WitnessRecords(keepAll(records[:2]))
		spoil(&held[1])
		if got, err := consensus.DecodeRecords(held); err == nil {
			t.Errorf("%s: got %d records, want an error", name, len(got))
		}
	}
}
