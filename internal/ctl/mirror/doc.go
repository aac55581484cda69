// Package mirror is `quorate mirror`: it copies a running cluster into another one, follows it, and says when clients may
// be switched. Either side is an etcd or a Quorate: only etcd's API is used.
//
// The position up to which the source was copied is a key of the target, written by the same transaction as the data. So a
// mirror that was cut off anywhere goes on exactly there, and two mirrors into one target exclude each other.
//
// The main types are Mirror, which copies, and Verdict, which compares.
//
// Invariants:
//  1. A transaction at the target is made of one revision of the source, in the order of revisions, unless it does not fit
//     the target's limits. Before the first revision that is followed, the target was made equal to the source at the one
//     before it.
//  2. Each change is made once, whatever answers are lost: see position.go.
//  3. A lease of the source does not end at the target while the mirror runs. It ends there after its keys are gone.
//  4. The verdict is of a comparison of everything, while the source did not change.
//
// A Mirror is used by one goroutine; its leases and its lag have goroutines of their own.
package mirror
