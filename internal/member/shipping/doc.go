// Package shipping decides, on the leader, which member ships the continuous backup: a learner or a voter that does not lead
// and has caught up, and the leader only where there is nobody else. A member that has not reported for a time, whose place
// takes nothing, that is removed, or that is cordoned is replaced.
//
// An Appointer proposes commands and waits for none. The state machine keeps turns and reports (kv.BackupRow), so that another
// leader goes on where the last one was. Time is that of the leader's own monotonic clock, and counts from when this leader
// first saw a turn or a report.
//
// A Prover decides likewise when the backup is to be proven, and which member does that: one that neither ships nor leads, each
// in its turn. The wall clock says how long ago the last try was, so that this outlives leaders; the monotonic one bounds how
// often one leader has it tried, whatever clocks say.
//
// The main types are Appointer and Prover. The simulator runs them as members do.
//
// Invariants:
//  1. An Appointer names the turn that it has seen, and the state machine gives each number once: of two leaders that appoint
//     at once, one changes nothing.
//  2. A member that reports is not replaced for being slow, nor for leading before it has led for MoveAfter.
//
// Safety of the backup does not rest on it: members that ship at once make a branch, which a restore sees (package backup).
//
// Appointer and Prover are each for one goroutine.
package shipping
