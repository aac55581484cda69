// Package snapshot builds, streams, verifies and installs copies of a member's store.
//
// It knows files, not keys: what is in the store is the engine's, which position of the log it stands for is the
// caller's, and how the stream travels is the transport's. There is no main type; the life of a snapshot is
//
//	sender:   Build -> Write -> (remove)            Build -> Clone -> open the clone as a store
//	receiver: Receive -> InstallAt                  Recover, at every start, before the store is opened
//
// Everything lies in the data directory: the store in StoreDir, snapshots that come and go in WorkDir.
//
// Laws, each tried by a crash at every operation of the file system:
//  1. After Receive returned nil, every byte and every name is on disk and agrees with the sender's checksums. After
//     it returned an error, nothing is left.
//  2. At any crash during InstallAt, Recover leaves either the old store or the new one, whole, in StoreDir.
//  3. The old store is removed only after the new one is durably in place.
//
// Functions may run concurrently on different directories. InstallAt and Recover need the store closed.
package snapshot
