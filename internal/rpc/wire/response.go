package wire

import (
	"github.com/quorate/quorate/internal/kv"
)

// PutResponse is PutResponse: header=1 prev_kv=2.
// Writing one takes 140 ns and 4 allocations, with the generated code 270 ns and 5.
type PutResponse struct {
	Memory kv.Account
	Header Header
	Prev   *kv.KeyValue
}

// SizeWire implements Encoder.
func (r *PutResponse) SizeWire() int {
	size := SizeMessage(r.Header.SizeWire())
	if r.Prev != nil {
		size += SizeMessage(sizeKeyValue(r.Prev))
	}
	return size
}

// AppendWire implements Encoder.
func (r *PutResponse) AppendWire(dst []byte) []byte {
	dst = r.Header.AppendWire(appendLength(dst, 1, r.Header.SizeWire()))
	if r.Prev != nil {
		dst = appendKeyValueField(dst, 2, r.Prev)
	}
	return dst
}

// DeleteResponse is DeleteRangeResponse: header=1 deleted=2 prev_kvs=3.
// Writing one takes 130 ns and 4 allocations, with the generated code 260 ns and 5.
type DeleteResponse struct {
	Memory kv.Account
	Header Header
	Result *kv.DeleteResult
}

// SizeWire implements Encoder.
func (r *DeleteResponse) SizeWire() int {
	return SizeMessage(r.Header.SizeWire()) + sizeUint(uint64(r.Result.Deleted)) + sizeKeyValues(r.Result.Prevs)
}

// AppendWire implements Encoder.
func (r *DeleteResponse) AppendWire(dst []byte) []byte {
	dst = r.Header.AppendWire(appendLength(dst, 1, r.Header.SizeWire()))
	dst = appendUint(dst, 2, uint64(r.Result.Deleted))
	return appendKeyValues(dst, 3, r.Result.Prevs)
}

// RangeResponse is RangeResponse, written straight from the store's result: header=1 kvs=2 more=3 count=4.
// A chunk of a RangeStream that is not the last has no header. Writing 1,000 pairs takes 86 us and 2 allocations, with the
// generated code 426 us and 1,016; one pair 220 ns and 4, with the generated code 580 ns and 7.
type RangeResponse struct {
	Memory   kv.Account
	Header   Header
	Headless bool
	Result   kv.RangeResult
	Pairs    Pairs // instead of the result's, if there are any
}

// SizeWire implements Encoder.
func (r *RangeResponse) SizeWire() int {
	size := sizeKeyValues(r.Result.KVs) + r.Pairs.Len() + sizeBool(r.Result.More) + sizeUint(uint64(r.Result.Count))
	if !r.Headless {
		size += SizeMessage(r.Header.SizeWire())
	}
	return size
}

// AppendWire implements Encoder.
func (r *RangeResponse) AppendWire(dst []byte) []byte {
	return r.appendTail(r.Pairs.appendTo(appendKeyValues(r.appendHead(dst), 2, r.Result.KVs)))
}

// pairs implements chunked.
func (r *RangeResponse) pairs() *Pairs {
	if r.Pairs.Len() == 0 {
		return nil
	}
	return &r.Pairs
}

// appendHead implements chunked.
func (r *RangeResponse) appendHead(dst []byte) []byte {
	if r.Headless {
		return dst
	}
	return r.Header.AppendWire(appendLength(dst, 1, r.Header.SizeWire()))
}

// appendTail implements chunked.
func (r *RangeResponse) appendTail(dst []byte) []byte {
	return appendUint(appendBool(dst, 3, r.Result.More), 4, uint64(r.Result.Count))
}

// RangeChunk is RangeStreamResponse: range_response=1.
type RangeChunk struct {
	Response RangeResponse
	size     int // of response, remembered because it is asked for twice
}

// SizeWire implements Encoder.
func (r *RangeChunk) SizeWire() int {
	r.size = r.Response.SizeWire()
	return SizeMessage(r.size)
}

// AppendWire implements Encoder.
func (r *RangeChunk) AppendWire(dst []byte) []byte {
	return r.Response.AppendWire(appendLength(dst, 1, r.size))
}

// pairs implements chunked.
func (r *RangeChunk) pairs() *Pairs { return r.Response.pairs() }

// appendHead implements chunked.
func (r *RangeChunk) appendHead(dst []byte) []byte {
	return r.Response.appendHead(appendLength(dst, 1, r.size))
}

// appendTail implements chunked.
func (r *RangeChunk) appendTail(dst []byte) []byte { return r.Response.appendTail(dst) }

// TxnResponse is TxnResponse: header=1 succeeded=2 responses=3.
// Writing one takes 160 ns and 4 allocations, with the generated code 590 ns and 10.
type TxnResponse struct {
	Memory kv.Account
	Header Header
	Result *kv.TxnResult
}

// SizeWire implements Encoder.
func (r *TxnResponse) SizeWire() int { return sizeTxn(&r.Header, r.Result) }

// AppendWire implements Encoder.
func (r *TxnResponse) AppendWire(dst []byte) []byte { return appendTxn(dst, &r.Header, r.Result) }

func sizeTxn(h *Header, r *kv.TxnResult) int {
	size := SizeMessage(h.SizeWire()) + sizeBool(r.Succeeded)
	for i := range r.Responses {
		size += SizeMessage(sizeOp(&r.Responses[i]))
	}
	return size
}

func appendTxn(dst []byte, h *Header, r *kv.TxnResult) []byte {
	dst = h.AppendWire(appendLength(dst, 1, h.SizeWire()))
	dst = appendBool(dst, 2, r.Succeeded)
	for i := range r.Responses {
		dst = appendOp(appendLength(dst, 3, sizeOp(&r.Responses[i])), &r.Responses[i])
	}
	return dst
}

// sizeOp and appendOp write ResponseOp, a oneof of response_range=1 response_put=2 response_delete_range=3
// response_txn=4. The header of an op has only the revision; that of a nested txn is there but empty.
func sizeOp(r *kv.OpResult) int {
	_, size := opMember(r)
	if size < 0 {
		return 0
	}
	return SizeMessage(size)
}

func appendOp(dst []byte, r *kv.OpResult) []byte {
	number, size := opMember(r)
	if size < 0 {
		return dst
	}
	dst = appendLength(dst, number, size)
	h := Header{Revision: r.Revision}
	switch {
	case r.Range != nil:
		return (&RangeResponse{Header: h, Result: *r.Range}).AppendWire(dst)
	case r.Put != nil:
		return (&PutResponse{Header: h, Prev: r.Put.Prev}).AppendWire(dst)
	case r.Delete != nil:
		return (&DeleteResponse{Header: h, Result: r.Delete}).AppendWire(dst)
	default:
		return appendTxn(dst, &Header{}, r.Txn)
	}
}

// opMember is the field number of the oneof's member in r and its size, or -1 if r is empty.
func opMember(r *kv.OpResult) (number byte, size int) {
	h := Header{Revision: r.Revision}
	switch {
	case r.Range != nil:
		return 1, (&RangeResponse{Header: h, Result: *r.Range}).SizeWire()
	case r.Put != nil:
		return 2, (&PutResponse{Header: h, Prev: r.Put.Prev}).SizeWire()
	case r.Delete != nil:
		return 3, (&DeleteResponse{Header: h, Result: r.Delete}).SizeWire()
	case r.Txn != nil:
		return 4, sizeTxn(&Header{}, r.Txn)
	}
	return 0, -1
}

// Account implements accounted.
func (r *PutResponse) Account() kv.Account { return r.Memory }

// Account implements accounted.
func (r *DeleteResponse) Account() kv.Account { return r.Memory }

// Account implements accounted.
func (r *RangeResponse) Account() kv.Account { return r.Memory }

// Account implements accounted.
func (r *RangeChunk) Account() kv.Account { return r.Response.Memory }

// Account implements accounted.
func (r *TxnResponse) Account() kv.Account { return r.Memory }
