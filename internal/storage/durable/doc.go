// Package durable writes directories and small files so that they survive a power loss.
//
// On a file system a new name is durable only once the directory that holds it was synced, and what lies below it is
// gone with it. MakeDir therefore syncs every level, WriteFile replaces a file as a whole (temporary file, sync, rename,
// sync of the directory), and a sealed file ends in a checksum, so that damage is told from contents.
//
// Invariants, tested with a power loss before every operation:
//  1. After MakeDir returned nil, the directory is there after any crash.
//  2. After a crash during WriteFile or WriteSealed, the file holds the old contents or the new ones, whole. After they
//     returned nil, the new ones.
//  3. ReadSealed returns what WriteSealed was given, or an error.
package durable
