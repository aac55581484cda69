// Package etcdlog reads the write-ahead log that a stopped etcd left, to find out whether the database beside it has all that
// the log has.
//
// It is not a replacement of etcd: it applies nothing. Of entries it tells only whether they change anything that a database
// holds. The format is that of etcd's package wal, which is not imported because all of etcd's server would come with it.
// The main function is Read.
//
// Invariants:
//  1. Every record is checked by the log's running CRC-32C. A record that does not match is an error, unless it is the last
//     one and a part of it was never written.
//  2. An entry that was written again, after a change of leaders, counts as it was written last.
//  3. Memory is bounded by the largest record, and a byte for each entry after the given index.
//
// Read may be called concurrently.
package etcdlog
