package wal

import "github.com/quorate/quorate/internal/consensus"

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
