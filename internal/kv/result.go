package kv

// Result is the outcome of one Command: the same on every member. Err is a deterministic rejection (one of the sentinels in
// errors.go), and then nothing changed; the response pointers belong to the command of that name.
type Result struct {
	Err      error
	Revision Revision // of the store after the command
	Put      *PutResult
	Delete   *DeleteResult
	Txn      *TxnResult
	Lease    *LeaseResult
	Alarms   []Alarm // after an AlarmOp: the alarms it changed
	// Left, if set, says that keys and values which the answer needs are left out: pairs that were read, and previous pairs. Of
	// a transaction all responses are left out. They can be read again from history (apply.Machine.Recall).
	Left *Left
	// Memory counts the bytes of the answer, nil if they are not counted. It must be released once the answer was sent.
	Memory Account
}

// Left describes a result without the keys and values that can be read again.
type Left struct {
	Base Revision // of the store before the command
}

// Account counts the memory of one answer against a budget (package limits/answers).
type Account interface {
	// Take must be called before more bytes are used. An error means that they must not be.
	Take(bytes int) error
	// Walk must be called with the bytes read since the last call, whether they belong to the answer or not, plus WalkKeyBytes
	// for each key. It lets other goroutines run. An error ends the read.
	Walk(bytes int) error
	// Release gives all bytes back. It may be called more than once.
	Release()
}

// WalkKeyBytes counts for a key, beside its value, in Account.Walk and in bounds on the reads of a command: to step over one
// key takes about as long as to read so many bytes.
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
	Count int64 // keys in the range at that revision, before limit and filters
}

// TxnResult answers a TxnOp; Responses has one element for each op of the list that was performed.
type TxnResult struct {
	Succeeded bool
	Responses []OpResult
}

// OpResult answers one Op: exactly one pointer is set. Revision is the one in the op's own header.
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
