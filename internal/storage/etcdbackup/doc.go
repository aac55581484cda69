// Package etcdbackup writes and reads the file format of etcd's own database, so that every tool that reads etcd's backups
// reads ours, and ours can be made from etcd's.
//
// It knows the format and nothing of the store. Of a file to write the caller hands over versions, changes, leases,
// alarms and members, in any order; of one to read it gets rows, decoded and checked one by one.
//
// The main types are Writer and File:
//
//	Create -> Version, Change, Lease, Alarm, Member, ... -> Finish -> Close
//	Open -> Verify -> Status, HashKV, Rows, Head, Users, Members -> Close
//
// Invariants:
//  1. The file is complete and on disk after Finish returned nil. A file that was closed before is of no use.
//  2. No two rows share a key: versions from before the compaction get the first sub-revision that is free.
//  3. Memory is bounded: written rows are committed every so often, and no page larger than 256 MiB is read.
//  4. A file to read may hold anything: no number in it is used before it was checked, and no page is visited twice. A fault
//     in it is an error that wraps ErrDamaged.
//
// bbolt writes; it is not used for reading, because it maps the file and trusts it.
//
// A Writer and a File are used by one goroutine.
package etcdbackup
