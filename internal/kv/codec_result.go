package kv

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/invariant"
)

// Binary form of a Result, a row of the result table. A put without prev_kv, the common row, takes 1 byte and the
// revision: about 5 bytes.
//
//	 bit   7   6   5     4        3       2   1   0
//	     [ format  1 ][ prev ][ error ][   kind    ]
//	byte 1.. revision, then the number of the error if there is one, then the fields of the kind
//
// A result from which values are left out (Result.Left) has format 2, and after the revision only by how much the command
// raised it, and for a deletion how many keys it deleted.
const (
	resultNone   = 0
	resultPut    = 1
	resultDelete = 2
	resultTxn    = 3
	resultLease  = 4
	resultAlarms = 5
	resultRange  = 6 // only inside a TxnResult

	resultKindMask = 7
	resultError    = 1 << 3
	resultPrev     = 1 << 4 // of a put: the previous pair follows
	resultFormat   = formatResult << 5
	resultLeft     = formatLeft << 5
)

// ErrBadResult is an operating error: a row of the result table does not decode.
var ErrBadResult = errors.New("kv: result does not decode")

// rejections numbers the errors of a Result from 1. The order is on disk: append only.
var rejections = [...]error{
	ErrCompacted, ErrFutureRevision, ErrKeyNotFound, ErrLeaseNotFound, ErrLeaseExists, ErrLeaseTTLTooBig, ErrNoSpace,
	ErrCorrupt, ErrSessionUnknown, ErrBadCommand, ErrSkipped, ErrDeposed, ErrJobExists, ErrJobConflict,
	ErrAborted,
	auth.ErrRootUserNotExist, auth.ErrRootRoleNotExist, auth.ErrUserAlreadyExist, auth.ErrUserEmpty, auth.ErrUserNotFound,
	auth.ErrRoleAlreadyExist, auth.ErrRoleNotFound, auth.ErrRoleEmpty, auth.ErrPermissionDenied, auth.ErrRoleNotGranted,
	auth.ErrPermissionNotGranted, auth.ErrPermissionNotGiven, auth.ErrInvalidManagement, auth.ErrOldRevision, auth.ErrBadName,
	auth.ErrTooLarge, auth.ErrTokenInvalid, auth.ErrTokenExpired, auth.ErrTokenUsed, auth.ErrTokenExists,
	auth.ErrTooManyTokens,
	ErrLooksTooFar,
	ErrOverQuota, ErrLimitNotFound, ErrTooManyLimits,
	ErrHeadBehind, ErrTooManyHeads,
}

// Append appends the binary form of res to dst. Err must be nil or one of the rejections of errors.go.
func (res *Result) Append(dst []byte) []byte {
	if res.Left != nil {
		return res.appendLeft(dst)
	}
	head := byte(resultFormat) | flag(res.Err != nil, resultError)
	switch {
	case res.Put != nil:
		head |= resultPut | flag(res.Put.Prev != nil, resultPrev)
	case res.Delete != nil:
		head |= resultDelete
	case res.Txn != nil:
		head |= resultTxn
	case res.Lease != nil:
		head |= resultLease
	case res.Alarms != nil:
		head |= resultAlarms
	}
	dst = appendRevision(append(dst, head), res.Revision)
	if res.Err != nil {
		dst = append(dst, RejectionNumber(res.Err))
	}
	switch head & resultKindMask {
	case resultPut:
		dst = res.Put.append(dst)
	case resultDelete:
		dst = res.Delete.append(dst)
	case resultTxn:
		dst = res.Txn.append(dst)
	case resultLease:
		dst = binary.AppendVarint(dst, int64(res.Lease.ID))
		dst = binary.AppendVarint(dst, res.Lease.TTLSeconds)
	case resultAlarms:
		dst = binary.AppendUvarint(dst, uint64(len(res.Alarms)))
		for _, alarm := range res.Alarms {
			dst = binary.AppendUvarint(append(dst, byte(alarm.Kind)), alarm.Member)
		}
	}
	return dst
}

// RejectionNumber returns the number that stands for a rejection on disk and in sums. The error must be one of errors.go.
func RejectionNumber(err error) byte {
	for i, known := range rejections {
		if err == known {
			return byte(i + 1)
		}
	}
	invariant.Broken("a result to encode bears an unknown rejection: %v", err)
	return 0
}

// DecodeResult reads the binary form; keys and values alias src. The error is ErrBadResult.
func DecodeResult(src []byte) (Result, error) {
	r := reader{src: src}
	head := r.byte()
	if head&^resultKindMask == resultLeft {
		return decodeLeft(head&resultKindMask, &r)
	}
	if format := head &^ (resultKindMask | resultError | resultPrev); format != resultFormat {
		r.known(format < resultFormat)
		r.fail()
	}
	r.known(head&resultPrev == 0 || head&resultKindMask == resultPut)
	res := Result{Revision: r.revision()}
	if head&resultError != 0 {
		res.Err = r.rejection()
	}
	switch head & resultKindMask {
	case resultNone:
	case resultPut:
		res.Put = r.putResult(head&resultPrev != 0)
	case resultDelete:
		res.Delete = r.deleteResult()
	case resultTxn:
		res.Txn = r.txnResult()
	case resultLease:
		res.Lease = &LeaseResult{ID: LeaseID(r.varint()), TTLSeconds: r.varint()}
	case resultAlarms:
		res.Alarms = make([]Alarm, r.count(2))
		for i := range res.Alarms {
			res.Alarms[i] = Alarm{Kind: AlarmKind(r.byte()), Member: r.uvarint()}
			r.known(res.Alarms[i].Kind.known())
		}
	default:
		r.unknown()
	}
	if err := r.finish(); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrBadResult, err)
	}
	return res, nil
}

func (res *Result) appendLeft(dst []byte) []byte {
	kind := byte(resultTxn)
	switch {
	case res.Put != nil:
		kind = resultPut
	case res.Delete != nil:
		kind = resultDelete
	}
	dst = appendRevision(append(dst, resultLeft|kind), res.Revision)
	dst = binary.AppendUvarint(dst, uint64(res.Revision-res.Left.Base))
	if res.Delete != nil {
		dst = binary.AppendVarint(dst, res.Delete.Deleted)
	}
	return dst
}

func decodeLeft(kind byte, r *reader) (Result, error) {
	res := Result{Revision: r.revision()}
	raised := r.uvarint()
	if raised > uint64(max(res.Revision, 0)) {
		r.fail()
	}
	res.Left = &Left{Base: res.Revision - Revision(raised)}
	switch kind {
	case resultPut:
		res.Put = &PutResult{}
	case resultDelete:
		res.Delete = &DeleteResult{Deleted: r.varint()}
	case resultTxn:
		res.Txn = &TxnResult{}
	default:
		r.unknown()
	}
	if err := r.finish(); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrBadResult, err)
	}
	return res, nil
}

func (r *reader) rejection() error {
	n := int(r.byte())
	if n == 0 || n > len(rejections) {
		r.known(n == 0)
		r.fail()
		return nil
	}
	return rejections[n-1]
}

func (p *PutResult) append(dst []byte) []byte {
	if p.Prev != nil {
		dst = p.Prev.append(dst)
	}
	return dst
}

// putResult reads a PutResult; its head, which the caller read, tells whether it has a previous pair.
func (r *reader) putResult(prev bool) *PutResult {
	p := &PutResult{}
	if prev {
		pair := r.keyValue()
		p.Prev = &pair
	}
	return p
}

func (d *DeleteResult) append(dst []byte) []byte {
	return appendKeyValues(binary.AppendVarint(dst, d.Deleted), d.Prevs)
}

func (r *reader) deleteResult() *DeleteResult {
	return &DeleteResult{Deleted: r.varint(), Prevs: r.keyValues()}
}

func (t *TxnResult) append(dst []byte) []byte {
	dst = append(dst, flag(t.Succeeded, 1))
	dst = binary.AppendUvarint(dst, uint64(len(t.Responses)))
	for i := range t.Responses {
		dst = t.Responses[i].append(dst)
	}
	return dst
}

func (r *reader) txnResult() *TxnResult {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > MaxTxnDepth {
		r.fail()
		return nil
	}
	t := &TxnResult{Succeeded: r.flags(1)&1 != 0}
	if n := r.count(2); n > 0 {
		t.Responses = make([]OpResult, n)
		for i := 0; i < n && !r.bad; i++ {
			t.Responses[i] = r.opResult()
		}
	}
	return t
}

func (o *OpResult) append(dst []byte) []byte {
	switch {
	case o.Range != nil:
		dst = appendRevision(append(dst, resultRange|flag(o.Range.More, resultPrev)), o.Revision)
		dst = binary.AppendVarint(dst, o.Range.Count)
		return appendKeyValues(dst, o.Range.KVs)
	case o.Put != nil:
		dst = appendRevision(append(dst, resultPut|flag(o.Put.Prev != nil, resultPrev)), o.Revision)
		return o.Put.append(dst)
	case o.Delete != nil:
		return o.Delete.append(appendRevision(append(dst, resultDelete), o.Revision))
	case o.Txn != nil:
		return o.Txn.append(appendRevision(append(dst, resultTxn), o.Revision))
	}
	return appendRevision(append(dst, resultNone), o.Revision)
}

func (r *reader) opResult() OpResult {
	head := r.flags(resultKindMask | resultPrev)
	r.known(head&resultPrev == 0 || head&resultKindMask == resultPut || head&resultKindMask == resultRange)
	o := OpResult{Revision: r.revision()}
	switch head & resultKindMask {
	case resultNone:
	case resultRange:
		o.Range = &RangeResult{More: head&resultPrev != 0, Count: r.varint(), KVs: r.keyValues()}
	case resultPut:
		o.Put = r.putResult(head&resultPrev != 0)
	case resultDelete:
		o.Delete = r.deleteResult()
	case resultTxn:
		o.Txn = r.txnResult()
	default:
		r.unknown()
	}
	return o
}

// minKeyValueBytes is one byte for each field of a KeyValue.
const minKeyValueBytes = 6

func appendKeyValues(dst []byte, pairs []KeyValue) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(pairs)))
	for i := range pairs {
		dst = pairs[i].append(dst)
	}
	return dst
}

func (r *reader) keyValues() []KeyValue {
	n := r.count(minKeyValueBytes)
	if n == 0 {
		return nil
	}
	pairs := make([]KeyValue, n)
	for i := range pairs {
		pairs[i] = r.keyValue()
	}
	return pairs
}

func (p *KeyValue) append(dst []byte) []byte {
	dst = appendBytes(dst, p.Key)
	dst = appendBytes(dst, p.Value)
	dst = appendRevision(dst, p.CreateRevision)
	dst = appendRevision(dst, p.ModRevision)
	dst = binary.AppendVarint(dst, p.Version)
	return binary.AppendVarint(dst, int64(p.Lease))
}

func (r *reader) keyValue() KeyValue {
	return KeyValue{
		Key:            r.bytes(),
		Value:          r.bytes(),
		CreateRevision: r.revision(),
		ModRevision:    r.revision(),
		Version:        r.varint(),
		Lease:          LeaseID(r.varint()),
	}
}
