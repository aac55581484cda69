// Package kv holds the words of storage: Revision, KeyValue, LeaseID, Command, Result, Event and Footprint.
//
// They carry the meaning of etcd's v3 API without its protobuf types, so that the log and the store keep no wire
// format of somebody else. A Command is what a log entry's payload decodes to; applying the same commands in the
// same order gives the same state and the same Results on every member. Packages below this one (mvcc, lease,
// watch, apply) do the work.
//
// All types are plain data. Keys and values are byte slices that nobody modifies once they are in a Command,
// KeyValue or Event; holders may alias them.
package kv
