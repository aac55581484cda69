package datadir_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// Ensure that an uncommitted end of the log does not survive a snapshot that replaced the store when a crash came before the
// log's reset. The end of a former leader's log may reach beyond the snapshot, so the length of the log proves nothing.
func TestOpen_snapshotInstalled_logConflicts(t *testing.T) {
	leader := datatest.Create(t, datatest.Options(), 2)
	defer datatest.Close(t, leader)
	if _, err := leader.Machine.Apply(datatest.Puts(1, 50, 2)); err != nil {
		t.Fatal(err)
	}

	options := datatest.Options()
	data := datatest.Create(t, options, 1)
	if err := data.WAL.Append(wal.Batch{
		Hard: &consensus.HardState{Term: 1, Vote: 7}, Entries: datatest.Puts(1, 100, 1),
	}); err != nil {
		t.Fatal(err)
	}
	meta := leader.Machine.SnapshotMeta()
	if err := data.Replace(meta, datatest.Receive(t, options, leader)); err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, data) // the crash: the log was not reset

	data = datatest.Open(t, options)
	defer datatest.Close(t, data)
	restored := data.Restored
	if restored.Base.Position != meta.Position || len(restored.Entries) != 0 || restored.Applied != meta.Position.Index {
		t.Errorf("base %v with %d entries, applied %d; want the log to begin after %v",
			restored.Base.Position, len(restored.Entries), restored.Applied, meta.Position)
	}
	if hard := restored.Hard; hard.Term != 2 || hard.Vote != consensus.NoMember {
		t.Errorf("term %d with a vote for %s: the vote was one of term 1", hard.Term, hard.Vote)
	}
}

// answeredBy makes an entry look as if a leader had answered it on the fast path, at a revision.
func answeredBy(e *consensus.Entry, leader consensus.MemberID, revision uint64) {
	e.Proposal = consensus.ProposalID{Session: consensus.SessionID{Member: 3, Number: 1}, Sequence: uint64(e.Index)}
	e.Answered, e.ExactRevision = leader, revision
}

func heldRecord(e *consensus.Entry, config consensus.ConfigID) consensus.Record {
	return consensus.Record{
		Attempt: consensus.Attempt{Proposal: e.Proposal, Revision: e.ExactRevision},
		Term:    e.Term, Config: config, Payload: e.Payload,
	}
}

// former is the data of a member that led in term 1: it answered entries on the fast path that no other member received, and
// holds a record for another member.
func former(t *testing.T, options datadir.Options) (data *datadir.Data, want []consensus.Record) {
	t.Helper()
	data = datatest.Create(t, options, 1)
	log := datatest.Puts(1, 60, 1)
	answeredBy(&log[9], 1, 10) // the snapshot may have decided it; a member that knows its outcome drops it
	answeredBy(&log[54], 1, 55)
	answeredBy(&log[55], 2, 56) // answered by another leader
	// An entry of the slow path stands for no promise.
	log[56].Proposal = consensus.ProposalID{Session: consensus.SessionID{Member: 3, Number: 1}, Sequence: 57} // slow
	log[57] = consensus.Entry{Index: 58, Term: 1, Kind: consensus.EntryConfig,
		Payload: consensus.AppendConfigChange(nil, &consensus.ConfigChange{})}
	answeredBy(&log[58], 1, 58)
	held := heldRecord(&datatest.Puts(90, 1, 1)[0], consensus.ConfigID{})
	held.Attempt = consensus.Attempt{
		Proposal: consensus.ProposalID{Session: consensus.SessionID{Member: 2, Number: 4}, Sequence: 1}, Revision: 77,
	}
	batch := wal.Batch{
		Hard: &consensus.HardState{Term: 1}, Entries: log,
		Witness: []wal.WitnessRecord{{Attempt: consensus.AttemptIDOf(held.Attempt), Payload: consensus.AppendRecord(nil, &held)}},
	}
	if err := data.WAL.Append(batch); err != nil {
		t.Fatal(err)
	}
	first := data.Restored.Base.ConfigID
	return data, []consensus.Record{
		held, heldRecord(&log[9], first), heldRecord(&log[54], first),
		heldRecord(&log[58], consensus.ConfigID{Index: 58, Term: 1}),
	}
}

// A leader's answer on the fast path is a promise, kept by its log entry. If a crash comes after a snapshot replaced the store
// and before the log's reset, the next start keeps the promise as a record, which is as durable as the new beginning of the
// log.
func TestOpen_snapshotInstalled_keepsWhatWasAnswered(t *testing.T) {
	leader := datatest.Create(t, datatest.Options(), 2)
	defer datatest.Close(t, leader)
	if _, err := leader.Machine.Apply(datatest.Puts(1, 50, 2)); err != nil {
		t.Fatal(err)
	}
	options := datatest.Options()
	data, want := former(t, options)
	meta := leader.Machine.SnapshotMeta()
	if err := data.Replace(meta, datatest.Receive(t, options, leader)); err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, data) // the crash: the log was not reset
	for _, when := range []string{"when the log is dropped", "after another start"} {
		data = datatest.Open(t, options)
		restored := data.Restored
		if restored.Base.Position != meta.Position || len(restored.Entries) != 0 {
			t.Errorf("%s: the log begins after %v with %d entries, want %v and none", when, restored.Base.Position,
				len(restored.Entries), meta.Position)
		}
		if diff := cmp.Diff(want, restored.Records); diff != "" {
			t.Errorf("%s: the pool is different:\n%s", when, diff)
		}
		if got, want := restored.Revision, uint64(leader.Machine.Store().Revision()); got != want {
			t.Errorf("%s: revision %d, want that of the snapshot, %d", when, got, want)
		}
		datatest.Close(t, data)
	}
}

// A log that is not replaced needs no records for its own entries.
func TestOpen_logStays_recordsStay(t *testing.T) {
	options := datatest.Options()
	data, want := former(t, options)
	datatest.Close(t, data)
	data = datatest.Open(t, options)
	defer datatest.Close(t, data)
	if diff := cmp.Diff(want[:1], data.Restored.Records); diff != "" || len(data.Restored.Entries) != 60 {
		t.Errorf("%d entries, and the pool is different:\n%s", len(data.Restored.Entries), diff)
	}
}

func TestOpen_damagedRecord(t *testing.T) {
	options := datatest.Options()
	data := datatest.Create(t, options, 1)
	if err := data.WAL.Append(wal.Batch{Witness: []wal.WitnessRecord{{Payload: []byte("no record")}}}); err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, data)
	data, err := datadir.Open(options)
	if err == nil {
		datatest.Close(t, data)
	}
	if err == nil || !strings.Contains(err.Error(), "damaged") || !datadir.Damaged(err) ||
		!strings.Contains(err.Error(), "data/wal") {
		t.Errorf("got %v, want an error that says where the damage is and what to do", err)
	}
}
