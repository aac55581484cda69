// Package etcdbackup writes the file format of etcd's own database, so that every tool that reads etcd's backups reads
// ours.
//
// It knows the format and nothing of the store: the caller reads the store and hands over versions, changes, leases,
// alarms and members, in any order. Reading such a file is the work of etcd's tools.
//
// The main type is Writer:
//
//	Create -> Version, Change, Lease, Alarm, Member, ... -> Finish -> Close
//
// Invariants:
//  1. The file is complete and on disk after Finish returned nil. A file that was closed before is of no use.
//  2. No two rows share a key: versions from before the compaction get the first sub-revision that is free.
//  3. Memory is bounded: what is written is committed every so often.
//
// A Writer is used by one goroutine.
package etcdbackup
