package kv

// Result is what applying one Command gave: the same on every member. Err is a deterministic rejection (one of the
// sentinels in errors.go) and then nothing changed; the response pointers belong to the command of that name.
type Result struct {
	Err      error
	Revision Revision // of the store after the command
	Put      *PutResult
	Delete   *DeleteResult
	Txn      *TxnResult
	Lease    *LeaseResult
	Alarms   []Alarm // after an AlarmOp: the alarms it changed
	// Left, if set, says that keys and values which the answer needs are left out: what was read, and previous pairs. Of a
	// transaction all responses are left out. They can be read again from history (apply.Machine.Recall).
	Left *Left
	// Memory counts the bytes of the answer, nil if they are not counted. It must be released once the answer was sent.
	Memory Account
}

// Left is what is kept of a result instead of the keys and values that are read again.
type Left struct {
	Base Revision // of the store before the command
}

// Account counts the memory of one answer against a budget (package kv/answers).
type Account interface {
	// Take must be called before more bytes are used. An error means that they must not be.
	Take(bytes int) error
	// Walk must be called with what was looked at since the last call, whether it belongs to the answer or not: its bytes, and
	// WalkKeyBytes for each key. It lets other goroutines run. An error ends the read.
	Walk(bytes int) error
	// Release gives all of it back. It may be called more than once.
	Release()
}

// WalkKeyBytes is what a key counts, beside its value, in Account.Walk and in bounds of what a command looks at: to walk over
// one key takes about as long as to read so many bytes.
const WalkKeyBytes = 1 << 10

// PutResult answers a PutOp.
type PutResult struct{ Prev *KeyValue }

// DeleteResult answers a DeleteOp.
type DeleteResult struct {
	Deleted int64
	Prevs   []KeyValue
}

// RangeResult answers a RangeOp.
type RangeResult struct {
	KVs   []KeyValue
	More  bool
	Count int64 // keys in the range at that revision, whatever limit and filters say
}

// TxnResult answers a TxnOp; Responses has one element for each op of the list that was taken.
type TxnResult struct {
	Succeeded bool
	Responses []OpResult
}

// OpResult answers one Op: exactly one pointer is set. Revision is what the op's own header shows.
type OpResult struct {
	Revision Revision
	Range    *RangeResult
	Put      *PutResult
	Delete   *DeleteResult
	Txn      *TxnResult
}

// LeaseResult answers a LeaseGrantOp.
type LeaseResult struct {
	ID         LeaseID
	TTLSeconds int64
}
