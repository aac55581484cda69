package kv

import "math"

// Revision is the store's logical time: it grows by one with each command that changes keys (etcd's main revision). A store
// without writes has revision 1.
type Revision int64

// Rev is the full position of one change: the command's revision and the change's place within it, from 0.
type Rev struct {
	Main Revision
	Sub  int64
}

// LeaseID names a lease; zero means "no lease". Negative ids are legal.
type LeaseID int64

// KeyValue is one key at one revision.
type KeyValue struct {
	Key            []byte
	Value          []byte
	CreateRevision Revision
	ModRevision    Revision
	Version        int64 // 1 at creation, grows with each put; zero in a tombstone
	Lease          LeaseID
}

// EventKind is the kind of a change of a key.
type EventKind uint8

const (
	EventPut    EventKind = 0
	EventDelete EventKind = 1
)

// Event is one change of one key. A delete has only Key and ModRevision in KV.
// Prev is the key before the change, nil if it did not exist; watchers that ask for prev_kv get it.
type Event struct {
	Kind EventKind
	KV   KeyValue
	Prev *KeyValue
	// Bare says that only the hash and the size of Prev's value were kept: no watcher asked for the value.
	Bare     bool
	PrevSize uint32 // of the value; beside Bare, where an event has room
	PrevSum  uint64 // xxhash
}

// RangeEnd values follow etcd: empty = just Key; "\x00" = from Key to the end of the key space; else [Key, End).

// Limits that etcd's API fixes.
const (
	MaxLeaseTTLSeconds = 9_000_000_000
	MaxRevision        = Revision(math.MaxInt64)
)
