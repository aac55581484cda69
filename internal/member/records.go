package member

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/wal"
)

// The records that this member holds for others, as the WAL knows them: by attempt, encoded by package consensus.

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
