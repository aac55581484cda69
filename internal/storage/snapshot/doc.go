// Package snapshot builds, streams and verifies copies of a member's store, and knows which generation of it counts.
//
// It knows files, not keys: what is in the store is the engine's, which position of the log it stands for is the
// caller's, and how the stream travels is the transport's. There is no main type; the life of a snapshot is
//
//	sender:   Build -> Write -> (remove)            Build -> Clone -> open the clone as a store, for reading
//	receiver: Receive -> Stage -> open and check -> Switch -> close the old generation -> Remove
//
// Everything lies in the data directory: generations of the store and the file that says which one counts in StoresDir,
// snapshots that come and go in WorkDir. docs/adr/0018-generations-of-the-store.md says why.
//
// Invariants, tested with a crash at every operation of the file system:
//  1. After Receive returned nil, every byte and every name is on disk and agrees with the sender's checksums. After
//     it returned an error, nothing is left.
//  2. At any crash, Recover finds the old generation or the new one, whole; after Switch returned nil, the new one.
//  3. A generation is removed only after another one durably counts.
//
// Functions may run concurrently on different directories.
package snapshot
