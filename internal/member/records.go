package member

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/wal"
)

// The records that this member holds for others, as the WAL knows them: by attempt, encoded by package consensus.

func witnessRecords(changes []consensus.RecordChange) []wal.WitnessRecord {
	if len(changes) == 0 {
		return nil
	}
	records := make([]wal.WitnessRecord, len(changes))
	for i := range changes {
		c := &changes[i]
		records[i] = wal.WitnessRecord{Attempt: wal.AttemptOf(c.Record.Attempt), Forget: c.Forget}
		if !c.Forget {
			records[i].Payload = consensus.AppendRecord(nil, &c.Record)
		}
	}
	return records
}

func keepAll(records []consensus.Record) []consensus.RecordChange {
	changes := make([]consensus.RecordChange, len(records))
	for i := range records {
		changes[i].Record = records[i]
	}
	return changes
}

func restoredRecords(held []wal.WitnessRecord) ([]consensus.Record, error) {
	records := make([]consensus.Record, 0, len(held))
	for i := range held {
		record, rest, err := consensus.DecodeRecord(held[i].Payload)
		if err != nil || len(rest) > 0 || wal.AttemptOf(record.Attempt) != held[i].Attempt {
			return nil, fmt.Errorf("%w: record %x of another member's proposal does not decode", ErrDamaged, held[i].Attempt[:])
		}
		records = append(records, record)
	}
	return records, nil
}
