package recovery_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/storage/wal"
)

var fastSession = consensus.SessionID{Member: 2, Number: 1}

// offered is a put of one key, as a voter holds it for the fast path.
func offered(sequence uint64, key, value string, revision uint64, config consensus.ConfigID) consensus.Record {
	command := kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: []byte(value)}}
	return consensus.Record{
		Attempt: consensus.Attempt{
			Proposal: consensus.ProposalID{Session: fastSession, Sequence: sequence}, Revision: revision,
		},
		Term: 2, Config: config, Payload: command.Append(nil),
	}
}

// ofClient is a record of a native client's proposal in the place of a member's.
func ofClient(r consensus.Record) consensus.Record {
	r.Proposal.Session = consensus.ClientSession(9, 1)
	r.Attempt = consensus.AttemptOf(r.Proposal, r.Revision, r.Payload)
	return r
}

// holder is the closed data of one voter of a cluster, with an open session and records in its pool.
func holder(t *testing.T, id consensus.MemberID, voters ids, records []consensus.Record, more ...consensus.Entry,
) datadir.Options {
	t.Helper()
	options := datatest.Options()
	data := datatest.Create(t, options, id)
	open := kv.Command{SessionOpen: &kv.SessionOpenOp{Member: uint64(fastSession.Member), Number: fastSession.Number}}
	entries := []consensus.Entry{
		configEntry(1, 1, consensus.ConfigChange{Protocol: consensus.ProtocolSingle, Config: membersOf(voters)}),
		{Index: 2, Term: 2, Kind: consensus.EntryCommand, Payload: open.Append(nil),
			Proposal: consensus.ProposalID{Session: fastSession}},
	}
	batch := wal.Batch{Hard: &consensus.HardState{Term: 2}, Entries: append(entries, more...)}
	for i := range records {
		batch.Witness = append(batch.Witness, wal.WitnessRecord{
			Attempt: consensus.AttemptIDOf(records[i].Attempt), Payload: consensus.AppendRecord(nil, &records[i]),
		})
	}
	if err := data.WAL.Append(batch); err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, data)
	return options
}

var firstConfig = consensus.ConfigID{Index: 1, Term: 1}

// Ensure that a write which only the survivor's pool still holds is there after the recovery, at the revision that its
// client was told.
func TestSurvivor_Plan_keepsDecidedWrites(t *testing.T) {
	options := holder(t, 1, ids{1, 2, 3}, []consensus.Record{
		offered(2, "b", "late", 7, firstConfig), offered(1, "a", "early", 3, firstConfig),
	})
	plan, err := inspect(t, options).Plan(nil)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Adopted != 2 || plan.Conflicting != 0 {
		t.Errorf("adopted %d, gave up %d", plan.Adopted, plan.Conflicting)
	}
	if err := plan.Write(options); err != nil {
		t.Fatal(err)
	}
	data := datatest.Open(t, options)
	defer datatest.Close(t, data)
	entries := data.Restored.Entries
	if n := len(entries); n != 5 || entries[n-1].Kind != consensus.EntryConfig {
		t.Fatalf("the log does not end in the configuration: %+v", entries)
	}
	if _, err := data.Machine.Apply(entries); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		key, value string
		revision   kv.Revision
	}{{"a", "early", 3}, {"b", "late", 7}} {
		found, _, err := data.Machine.Store().Range(&kv.RangeOp{Key: []byte(want.key)})
		if err != nil || len(found.KVs) != 1 {
			t.Errorf("%s: %d keys, %v", want.key, len(found.KVs), err)
			continue
		}
		got := found.KVs[0]
		if string(got.Value) != want.value || got.ModRevision != want.revision {
			t.Errorf("%s: got %q at revision %d, want %q at %d", want.key, got.Value, got.ModRevision, want.value, want.revision)
		}
	}
}

// Ensure that records are adopted if they may have been decided, and no others.
func TestSurvivor_Plan_adopts(t *testing.T) {
	a, b := offered(1, "a", "1", 5, firstConfig), offered(2, "a", "2", 5, firstConfig)
	told, lie := ofClient(offered(3, "h", "1", 5, firstConfig)), ofClient(offered(3, "a", "lie", 5, firstConfig))
	logged := func(r consensus.Record, exact uint64) consensus.Entry {
		return consensus.Entry{Index: 3, Term: 2, Kind: consensus.EntryCommand, Proposal: r.Proposal, ExactRevision: exact,
			Payload: r.Payload}
	}
	five := ids{1, 2, 3, 4, 5}
	type pool = []consensus.Record
	for _, tc := range []struct {
		name     string
		voters   ids
		own      pool
		others   []pool
		log      []consensus.Entry
		adopted  []uint64 // sequences
		conflict int
	}{
		{"the survivor's, of three", ids{1, 2, 3}, pool{a}, nil, nil, []uint64{1}, 0},
		{"not if one of three, who was compared, lacks it: all three decide", ids{1, 2, 3}, pool{a}, []pool{nil}, nil, nil, 0},
		{"both of two", ids{1, 2}, pool{a}, []pool{{a}}, nil, []uint64{1}, 0},
		{"another survivor's, of five", five, nil, []pool{{a}}, nil, []uint64{1}, 0},
		{"not if two of five lack it: four decide", five, pool{a}, []pool{nil, nil}, nil, nil, 0},
		{"of two that conflict the one that more hold", five, pool{a}, []pool{{b}, {b}}, nil, []uint64{2}, 0},
		{"of two that conflict the survivor's", five, pool{a}, []pool{{b}}, nil, []uint64{1}, 1},
		{"not a payload that others lack, because they hold its id", five, pool{lie}, []pool{{told, a}, {told, a}}, nil, []uint64{1, 3}, 0},
		{"not what is logged", ids{1, 2, 3}, pool{a}, nil, []consensus.Entry{logged(a, 5)}, nil, 0},
		{"not what is logged in its turn", ids{1, 2, 3}, pool{a}, nil, []consensus.Entry{logged(a, 0)}, nil, 0},
		{"but what is logged at another revision", ids{1, 2, 3}, pool{a}, nil, []consensus.Entry{logged(a, 4)}, []uint64{1}, 0},
		{"not what was held under another configuration", ids{1, 2, 3},
			pool{offered(1, "a", "1", 5, consensus.ConfigID{Index: 0, Term: 0})}, nil, nil, nil, 0},
	} {
		survivor := inspect(t, holder(t, 1, tc.voters, tc.own, tc.log...))
		var others []*recovery.Survivor
		for i, held := range tc.others {
			others = append(others, inspect(t, holder(t, consensus.MemberID(i+2), tc.voters, held)))
		}
		plan, err := survivor.Plan(nil, others...)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Adopted != len(tc.adopted) || plan.Conflicting != tc.conflict {
			t.Errorf("%s: adopted %d, gave up %d; want %v and %d", tc.name, plan.Adopted, plan.Conflicting, tc.adopted, tc.conflict)
			continue
		}
		if got := plan.AdoptedForTesting(); !slices.Equal(got, tc.adopted) {
			t.Errorf("%s: adopted %v, want %v", tc.name, got, tc.adopted)
		}
	}
}
