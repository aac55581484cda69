// Package wal is the write-ahead log of one member: entries, hard state, witness records, and the base of the log.
//
// It is not a general log: it uses the types of package consensus, keeps no payload in memory but those of witness records, and
// starts no goroutine. The main type is WAL; Open returns it with its contents, Recovered. A log is a directory of segments, a
// segment is a header and records, and a record is the items of one Append:
//
//	segment   | header | carried state | record | record | ... | zeros, or bytes of the file's former life |
//	record    | stamp | length | durable | crc | item | item | ... | pad |
//	item      | kind | body |      entry, entry by name, hard state, reset, base, witness add or forget, carried, mark,
//	                               boots, epoch; or all items of the record packed as one
//
// Invariants:
//  1. Append returns nil only after all of its batches are durable; recovery finds all of one Append, or nothing of it.
//  2. A record is live only under the stamp of its segment's number and its own offset. Numbers are never reused, so
//     bytes of a recycled file are never live.
//  3. Every segment begins with the carried state (hard state, base, boots, epoch, witness records), so the
//     older ones may be freed as soon as their entries are not needed. An entry by name, which lacks the payload that a
//     witness record has, finds that record in its own segment.
//  4. A segment has its final name only once its header and carried state are durable, and the one before is synced.
//  5. After a failed write or sync the WAL is failed for good: only the next Open can tell the state of the disk.
//
// Append, Compact and Close belong to one goroutine; Stats may be called from any. The caller
// holds the lock of the data directory. Why this format: docs/adr/0004-wal-format.md.
package wal
