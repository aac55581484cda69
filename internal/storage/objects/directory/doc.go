// Package directory keeps objects as files of a directory: on another disk, or on a file system of the network.
//
// An object obj/ab is the file obj/ab below the root, so that any program can copy or check it. It is written under a temporary
// name in .tmp, synced, and linked to its name, which fails if the name is taken: two writers cannot overwrite each other.
// Where a file system has no links it is renamed, after a look.
//
// Invariants, tested with a power loss before every operation:
//  1. After Put returned nil or ErrExists, the object is there after any crash, whole.
//  2. No name ever has part of an object.
//  3. The root is never made: where a disk should be mounted and is not, nothing is written.
//  4. Nothing is read, written or removed behind a link that leads out of the root, whenever somebody puts it there; one that
//     leads to another directory of the root is refused when it is seen: see Store.own.
package directory
