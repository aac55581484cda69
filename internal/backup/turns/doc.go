// Package turns decides what a member does for the continuous backup: which turn is its own, when it opens the place and
// goes on there, when it reports, and when it gives up. Package ship decides, within a turn, what it ships.
//
// It is a state machine. Inputs are the row of the backup as the member has applied it, with the time (Look), and how
// operations ended (Opened, Done, Reported, Closed, Late); outputs are operations (Take). Applied entries come from a Feed. It
// has no clock, no goroutine and no I/O: the caller performs the operations, in any number of goroutines, and calls Look after
// the Pause that the machine asks for, and when there are more entries. The simulator runs it on whole members.
//
// The main type is Machine.
//
// Invariants:
//  1. Outside of its turn a member puts nothing and reports nothing. A turn ends when the row says so, or a report is
//     refused, whichever comes first. Operations under way are cancelled then; where one takes effect in spite of that, the
//     place has at worst a branch, which a restore does not take.
//  2. A turn ends though operations on the place hang, as those of a file system of the network do: some time after they were
//     cancelled they are given up, and only counted from then on. They hold at most half of HeldBytes when another turn
//     begins, which has the rest, and are at most MostHung then. Operations on the member's own disk are waited for.
//  3. The files of a checkpoint are not read while it is made or removed.
//  4. A member that is at work on its turn reports, whether or not the place answers: the report says for how long it has
//     not.
//  5. Retention asks for nothing later than Times.Trust after the last report that the cluster took began.
//
// See docs/adr/0086-continuous-backup.md. A Machine is for one goroutine.
package turns
