// Package disk is a virtual disk: a file system in memory that knows which bytes would survive a power loss.
//
// It implements env.FS for one member. Pebble's own crashable file system was not used because its
// crash clone draws from the random stream in map order, so one seed would give many outcomes. FS is not a model of
// any one file system; it promises as little as POSIX on a journaling one does:
//
//  1. Written bytes survive a crash only after Sync or SyncData of the file. Before, each 512-byte sector of each
//     write survives or not by chance, so that writes are lost, torn and reordered.
//  2. A name (create, rename, link, remove) survives only after Sync of its directory. Before, a prefix of the pending
//     changes survives; one change, such as a rename, is atomic.
//  3. The same calls with the same random stream give the same bytes after a crash.
//
// Faults can be switched on: no space, I/O errors, a sync that lies, and a death after the n-th operation, with which
// the simulator crashes a member in the middle of a write. One goroutine at a time may use an FS.
package disk
