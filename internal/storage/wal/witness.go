package wal

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
)

// WitnessRecords returns changes of a voter's pool as a Batch takes them: by attempt, encoded by package consensus.
func WitnessRecords(changes []consensus.RecordChange) []WitnessRecord {
	if len(changes) == 0 {
		return nil
	}
	records := make([]WitnessRecord, len(changes))
	for i := range changes {
		c := &changes[i]
		records[i] = WitnessRecord{Attempt: AttemptOf(c.Record.Attempt), Forget: c.Forget}
		if !c.Forget {
			records[i].Payload = consensus.AppendRecord(nil, &c.Record)
		}
	}
	return records
}

// DecodeRecords returns the records of a log.
func DecodeRecords(held []WitnessRecord) ([]consensus.Record, error) {
	records := make([]consensus.Record, 0, len(held))
	for i := range held {
		record, rest, err := consensus.DecodeRecord(held[i].Payload)
		if err != nil || len(rest) > 0 || AttemptOf(record.Attempt) != held[i].Attempt {
			return nil, fmt.Errorf("record %x of another member's proposal does not decode", held[i].Attempt[:])
		}
		records = append(records, record)
	}
	return records, nil
}
