package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/base/level"
)

// AttemptID names a witness record on disk: a proposal id and a revision.
type AttemptID [32]byte

// AttemptIDOf returns the name of an attempt.
func AttemptIDOf(a Attempt) (id AttemptID) {
	binary.BigEndian.PutUint64(id[0:], uint64(a.Proposal.Session.Member))
	binary.BigEndian.PutUint64(id[8:], a.Proposal.Session.Number)
	binary.BigEndian.PutUint64(id[16:], a.Proposal.Sequence)
	binary.BigEndian.PutUint64(id[24:], a.Revision)
	return id
}

// WitnessRecord adds a record to the pool that survives compaction, or drops it. Its payload is the output of AppendRecord: a
// log keeps any other as well, but writes no entry by its name.
type WitnessRecord struct {
	Attempt AttemptID
	Forget  bool
	Payload []byte
}

// Batch is the persist request of one step of the core. The parts take effect in this order: Reset, Entries, Hard, Witness.
// Boots and Epoch are independent of them.
type Batch struct {
	Hard    *HardState
	Entries []Entry       // contiguous; the log is cut at Entries[0].Index first
	Reset   *SnapshotMeta // the log begins anew after this position
	Witness []WitnessRecord
	Boots   uint64 // unless zero: how many times the data was opened, this time included
	Epoch   *Epoch // unless nil: the cluster's from here on
}

// WitnessRecords returns changes of a voter's pool as a Batch takes them: by attempt, and encoded.
func WitnessRecords(changes []RecordChange) []WitnessRecord {
	if len(changes) == 0 {
		return nil
	}
	records := make([]WitnessRecord, len(changes))
	for i := range changes {
		c := &changes[i]
		records[i] = WitnessRecord{Attempt: AttemptIDOf(c.Record.Attempt), Forget: c.Forget}
		if !c.Forget {
			records[i].Payload = AppendRecord(nil, &c.Record)
		}
	}
	return records
}

// DecodeRecords returns the records that a log held.
func DecodeRecords(held []WitnessRecord) ([]Record, error) {
	records := make([]Record, 0, len(held))
	for i := range held {
		record, err := DecodeRecord(held[i].Payload)
		if errors.Is(err, level.ErrLater) {
			return nil, fmt.Errorf("record %x of another member's proposal: %w", held[i].Attempt[:], err)
		}
		if err != nil || AttemptIDOf(record.Attempt) != held[i].Attempt {
			return nil, fmt.Errorf("record %x of another member's proposal does not decode", held[i].Attempt[:])
		}
		records = append(records, record)
	}
	return records, nil
}
