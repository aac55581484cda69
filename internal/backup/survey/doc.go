// Package survey looks at a place once, for a member that is to prove the backup there: it lists the end of the history,
// compares the bases before it pair by pair where there is no memory for all names since the last proof, and proves the newest
// state, by what leads to the state that was reported, else by whatever leads there. Package prove proves.
//
// A Survey has steps, so that the caller can do other things in between. It has no goroutine and no clock: package
// server/prover takes its steps one after the other, and the simulator lets time pass between them.
//
// The main type is Survey.
//
// Invariants:
//  1. A part of the place that there was no memory for is no damage: where it may be the cause there is no verdict.
//  2. Each base since the last proof is compared, or the proof says why not, and the next one begins before it.
//
// See docs/adr/0091-who-proves-a-backup.md. A Survey is for one goroutine.
package survey
