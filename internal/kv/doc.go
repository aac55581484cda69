// Package kv holds the types of storage: Revision, KeyValue, LeaseID, Command, Result, Event and Footprint.
//
// They have the meaning of etcd's v3 API without its protobuf types, so that the log and the store depend on no foreign wire
// format. The payload of a log entry decodes to a Command; applying the same commands in the same order gives the same state
// and the same Results on every member. Packages below this one (mvcc, census, lease, watch, apply, counts) do the work;
// nextlevel is for tests.
//
// All types are plain data. Keys and values are byte slices that no code modifies once they are in a Command, KeyValue or
// Event; other slices may alias them.
package kv
