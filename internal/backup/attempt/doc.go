// Package attempt decides what the member does that is appointed to prove the continuous backup (package member/shipping): when
// it looks at the place, when it looks again, with which of its own entries it compares what was proven, and what it reports.
// Package prove proves.
//
// It is a state machine. Inputs are the row of the backup as the member has applied it, with the time and the member's own
// chain (Look), and how operations ended (Proved, Reported); outputs are operations (Take), one at a time. It has no clock, no
// goroutine and no I/O. The simulator runs it on whole members.
//
// The main type is Machine.
//
// Invariants:
//  1. A backup counts as damaged only if two looks at the place found it so: objects may have been removed by rule meanwhile.
//  2. A state counts as proven only if it is not before the one that was reported as restorable when the try began, and if it
//     is one of this member's own chain, where that knows it.
//  3. Nothing is reported of a try that is over.
//
// See docs/adr/0091-who-proves-a-backup.md. A Machine is for one goroutine.
package attempt
