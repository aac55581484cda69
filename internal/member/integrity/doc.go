// Package integrity finds members whose state differs from that of the others.
//
// Members have the same state after the same entry. A leader asks all members for one hash: of the chain of entries
// applied up to an index, which is cheap, or of all contents at a revision, for which each member reads its whole
// store. Judge compares the answers. The leader's Checker raises the alarm CORRUPT for each member that differs. Each
// member's Checker reads the alarms and says whether that member may serve.
//
// It is not the alarm itself, which is a command like any other (package kv/apply), nor a check of files on disk
// (packages storage/wal and storage/engine).
//
// Invariants:
//  1. Only samples of the same base and place are compared.
//  2. A hash is right if more than half of the voters that answered, and at least two, have it. If no hash is right, the
//     alarm names no member, and all members stop serving.
//  3. A corrupt member still votes and acknowledges, because its log is not in doubt. It leads only if no other voter can.
//
// Note belongs to the goroutine that applies, Run to a goroutine of its own. Everything else may be called
// concurrently. Why: docs/adr/0019-members-compare-themselves.md.
package integrity
