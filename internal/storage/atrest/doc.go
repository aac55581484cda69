// Package atrest encrypts what a member has on disk.
//
// A data directory has a Ring of data keys, in one small file that a Provider has wrapped: a file with a key, or a plug-in that
// asks a key service. Nothing else says which file has which key: each file names its key itself, in its head, so files and
// directories may move.
//
// FS encrypts each file that is made through it with AES-256 in counter mode, under a key of that file's own: HKDF-SHA256 of
// the data key and 32 random bytes in the head. Files are written once, from their beginning to their end: a place that is
// written twice would use one key stream twice, so FS refuses to open a file for writing in place. The log is written in place,
// and therefore seals each record by itself (package wal), with a Box.
//
// Counter mode proves nothing: who changes a byte of a file changes the same byte of its content. The engine's checksums, which
// lie inside, tell that from a value that was written, unless somebody forges them on purpose. Records of the log and the ring
// are sealed with AES-256-GCM, which proves that they were written with the key.
//
// Invariants:
//  1. No key stream is used twice: each File, and each use of a segment of the log, has a key of its own.
//  2. A data key is durable in the ring before a file begins with it, and stays in the ring for ever.
//  3. A file that is not encrypted is never read through FS, and none is written through it.
package atrest
