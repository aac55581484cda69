package kv

import (
	"encoding/binary"

	"github.com/quorate/quorate/internal/base/invariant"
)

// Flags of a PutOp. A lease of zero, the common case, takes no byte.
const (
	putPrevKV      = 1
	putIgnoreValue = 2
	putIgnoreLease = 4
	putLease       = 8
)

// maxPutOverhead bounds the binary form of a put beside key and value: format, kind and flags, two lengths and a lease.
const maxPutOverhead = 3 + 3*binary.MaxVarintLen64

func (op *PutOp) append(dst []byte) []byte {
	dst = append(dst, flag(op.PrevKV, putPrevKV)|flag(op.IgnoreValue, putIgnoreValue)|
		flag(op.IgnoreLease, putIgnoreLease)|flag(op.Lease != 0, putLease))
	dst = appendBytes(dst, op.Key)
	dst = appendBytes(dst, op.Value)
	if op.Lease != 0 {
		dst = binary.AppendVarint(dst, int64(op.Lease))
	}
	return dst
}

func (r *reader) put() PutOp {
	flags := r.flags(putPrevKV | putIgnoreValue | putIgnoreLease | putLease)
	op := PutOp{
		Key:         r.bytes(),
		Value:       r.bytes(),
		PrevKV:      flags&putPrevKV != 0,
		IgnoreValue: flags&putIgnoreValue != 0,
		IgnoreLease: flags&putIgnoreLease != 0,
	}
	if flags&putLease != 0 {
		op.Lease = LeaseID(r.varint())
		r.shown(op.Lease != 0)
	}
	return op
}

func (op *DeleteOp) append(dst []byte) []byte {
	dst = append(dst, flag(op.PrevKV, 1))
	dst = appendBytes(dst, op.Key)
	return appendBytes(dst, op.End)
}

func (r *reader) delete() *DeleteOp {
	flags := r.flags(1)
	return &DeleteOp{Key: r.bytes(), End: r.bytes(), PrevKV: flags&1 != 0}
}

// Flags of a RangeOp.
const (
	rangeKeysOnly  = 1
	rangeCountOnly = 2
	rangeBounds    = 4 // the four revision bounds follow
	rangeSort      = 8 // order and target follow
)

func (op *RangeOp) append(dst []byte) []byte {
	bounds := op.MinMod != 0 || op.MaxMod != 0 || op.MinCreate != 0 || op.MaxCreate != 0
	sorted := op.Order != 0 || op.Target != 0
	dst = append(dst, flag(op.KeysOnly, rangeKeysOnly)|flag(op.CountOnly, rangeCountOnly)|
		flag(bounds, rangeBounds)|flag(sorted, rangeSort))
	dst = appendBytes(dst, op.Key)
	dst = appendBytes(dst, op.End)
	dst = binary.AppendVarint(dst, op.Limit)
	dst = binary.AppendVarint(dst, int64(op.Revision))
	if sorted {
		dst = append(dst, byte(op.Order), byte(op.Target))
	}
	if bounds {
		for _, bound := range [...]Revision{op.MinMod, op.MaxMod, op.MinCreate, op.MaxCreate} {
			dst = binary.AppendVarint(dst, int64(bound))
		}
	}
	return dst
}

func (r *reader) rangeOp() *RangeOp {
	flags := r.flags(rangeKeysOnly | rangeCountOnly | rangeBounds | rangeSort)
	op := &RangeOp{
		Key:       r.bytes(),
		End:       r.bytes(),
		Limit:     r.varint(),
		Revision:  Revision(r.varint()),
		KeysOnly:  flags&rangeKeysOnly != 0,
		CountOnly: flags&rangeCountOnly != 0,
	}
	if flags&rangeSort != 0 {
		op.Order, op.Target = SortOrder(r.byte()), SortTarget(r.byte())
		r.known(op.known())
		r.shown(op.Order != 0 || op.Target != 0)
	}
	if flags&rangeBounds != 0 {
		for _, bound := range [...]*Revision{&op.MinMod, &op.MaxMod, &op.MinCreate, &op.MaxCreate} {
			*bound = Revision(r.varint())
		}
		r.shown(op.MinMod != 0 || op.MaxMod != 0 || op.MinCreate != 0 || op.MaxCreate != 0)
	}
	return op
}

func (op *TxnOp) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(op.Compares)))
	for i := range op.Compares {
		dst = op.Compares[i].append(dst)
	}
	return appendOps(appendOps(dst, op.Then), op.Else)
}

func (r *reader) txn() *TxnOp {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > MaxTxnDepth {
		r.fail()
		return nil
	}
	op := &TxnOp{}
	if n := r.count(minCompareBytes); n > 0 {
		op.Compares = make([]Compare, n)
		for i := range op.Compares {
			op.Compares[i] = r.compare()
		}
	}
	op.Then = r.ops()
	op.Else = r.ops()
	return op
}

func appendOps(dst []byte, ops []Op) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ops)))
	for i := range ops {
		switch op := &ops[i]; {
		case op.Range != nil:
			dst = op.Range.append(append(dst, commandRange))
		case op.Put != nil:
			dst = op.Put.append(append(dst, commandPut))
		case op.Delete != nil:
			dst = op.Delete.append(append(dst, commandDelete))
		case op.Txn != nil:
			dst = op.Txn.append(append(dst, commandTxn))
		default:
			invariant.Broken("operation %d of a transaction to encode is empty", i)
		}
	}
	return dst
}

func (r *reader) ops() []Op {
	n := r.count(minOpBytes)
	if n == 0 {
		return nil
	}
	ops := make([]Op, n)
	for i := 0; i < n && !r.bad; i++ {
		switch kind := r.byte(); kind {
		case commandRange:
			ops[i].Range = r.rangeOp()
		case commandPut:
			put := r.put()
			ops[i].Put = &put
		case commandDelete:
			ops[i].Delete = r.delete()
		case commandTxn:
			ops[i].Txn = r.txn()
		default:
			r.known(kind <= lastNoOperation)
			r.fail()
		}
	}
	return ops
}

// The least size of one element of a list: it bounds an allocation before the elements are read.
const (
	minCompareBytes = 6
	minOpBytes      = 4
)

func (c *Compare) append(dst []byte) []byte {
	dst = append(dst, byte(c.Target), byte(c.Result))
	dst = appendBytes(dst, c.Key)
	dst = appendBytes(dst, c.End)
	dst = binary.AppendVarint(dst, c.Number)
	return appendBytes(dst, c.Value)
}

func (r *reader) compare() Compare {
	c := Compare{
		Target: CompareTarget(r.byte()),
		Result: CompareResult(r.byte()),
		Key:    r.bytes(),
		End:    r.bytes(),
		Number: r.varint(),
		Value:  r.bytes(),
	}
	r.known(c.known())
	return c
}
