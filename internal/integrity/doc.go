// Package integrity finds members whose state differs from that of the others.
//
// Members hold the same state after the same entry. A leader asks all members for a hash at one place: of the chain of
// entries applied up to an index, which is cheap, or of all contents at a revision, for which each member reads its
// whole store. Judge compares the answers. The Checker of the leader raises the alarm CORRUPT for whoever differs; the
// Checker of each member sees the alarms and says whether that member may serve.
//
// It is not the alarm itself, which is a command like any other (package kv/apply), nor a check of files on disk
// (packages storage/wal and storage/engine).
//
// Invariants:
//  1. Only samples of the same base and place are compared.
//  2. A sum is right if more than half of the voters that answered, and at least two, have it. If no sum is right, the
//     alarm is for nobody in particular, and all members stop serving.
//  3. A corrupt member votes and acknowledges, because its log is as good as any. It leads only if nobody else can.
//
// Note belongs to the goroutine that applies, Run to a goroutine of its own. Everything else may be called
// concurrently. Why: docs/adr/0019-members-compare-themselves.md.
package integrity
