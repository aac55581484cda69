package rpc

import (
	"github.com/quorate/quorate/internal/kv"
)

// putResponse is PutResponse: header=1 prev_kv=2.
type putResponse struct {
	room   kv.Room
	header header
	prev   *kv.KeyValue
}

func (r *putResponse) sizeWire() int {
	size := sizeMessage(r.header.sizeWire())
	if r.prev != nil {
		size += sizeMessage(sizeKeyValue(r.prev))
	}
	return size
}

func (r *putResponse) appendWire(dst []byte) []byte {
	dst = r.header.appendWire(appendLength(dst, 1, r.header.sizeWire()))
	if r.prev != nil {
		dst = appendKeyValueField(dst, 2, r.prev)
	}
	return dst
}

// deleteResponse is DeleteRangeResponse: header=1 deleted=2 prev_kvs=3.
type deleteResponse struct {
	room   kv.Room
	header header
	result *kv.DeleteResult
}

func (r *deleteResponse) sizeWire() int {
	return sizeMessage(r.header.sizeWire()) + sizeUint(uint64(r.result.Deleted)) + sizeKeyValues(r.result.Prevs)
}

func (r *deleteResponse) appendWire(dst []byte) []byte {
	dst = r.header.appendWire(appendLength(dst, 1, r.header.sizeWire()))
	dst = appendUint(dst, 2, uint64(r.result.Deleted))
	return appendKeyValues(dst, 3, r.result.Prevs)
}

// rangeResponse is RangeResponse, written straight from the store's result: header=1 kvs=2 more=3 count=4.
// A chunk of a RangeStream that is not the last has no header.
type rangeResponse struct {
	room     kv.Room
	header   header
	headless bool
	result   kv.RangeResult
}

func (r *rangeResponse) sizeWire() int {
	size := sizeKeyValues(r.result.KVs) + sizeBool(r.result.More) + sizeUint(uint64(r.result.Count))
	if !r.headless {
		size += sizeMessage(r.header.sizeWire())
	}
	return size
}

func (r *rangeResponse) appendWire(dst []byte) []byte {
	if !r.headless {
		dst = r.header.appendWire(appendLength(dst, 1, r.header.sizeWire()))
	}
	dst = appendKeyValues(dst, 2, r.result.KVs)
	dst = appendBool(dst, 3, r.result.More)
	return appendUint(dst, 4, uint64(r.result.Count))
}

// rangeChunk is RangeStreamResponse: range_response=1.
type rangeChunk struct {
	response rangeResponse
	size     int // of response, remembered because it is asked for twice
}

func (r *rangeChunk) sizeWire() int {
	r.size = r.response.sizeWire()
	return sizeMessage(r.size)
}

func (r *rangeChunk) appendWire(dst []byte) []byte {
	return r.response.appendWire(appendLength(dst, 1, r.size))
}

// txnResponse is TxnResponse: header=1 succeeded=2 responses=3.
type txnResponse struct {
	room   kv.Room
	header header
	result *kv.TxnResult
}

func (r *txnResponse) sizeWire() int { return sizeTxn(&r.header, r.result) }

func (r *txnResponse) appendWire(dst []byte) []byte { return appendTxn(dst, &r.header, r.result) }

func sizeTxn(h *header, r *kv.TxnResult) int {
	size := sizeMessage(h.sizeWire()) + sizeBool(r.Succeeded)
	for i := range r.Responses {
		size += sizeMessage(sizeOp(&r.Responses[i]))
	}
	return size
}

func appendTxn(dst []byte, h *header, r *kv.TxnResult) []byte {
	dst = h.appendWire(appendLength(dst, 1, h.sizeWire()))
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
	return sizeMessage(size)
}

func appendOp(dst []byte, r *kv.OpResult) []byte {
	number, size := opMember(r)
	if size < 0 {
		return dst
	}
	dst = appendLength(dst, number, size)
	h := header{revision: r.Revision}
	switch {
	case r.Range != nil:
		return (&rangeResponse{header: h, result: *r.Range}).appendWire(dst)
	case r.Put != nil:
		return (&putResponse{header: h, prev: r.Put.Prev}).appendWire(dst)
	case r.Delete != nil:
		return (&deleteResponse{header: h, result: r.Delete}).appendWire(dst)
	default:
		return appendTxn(dst, &header{}, r.Txn)
	}
}

// opMember is the field number of the oneof's member in r and its size, or -1 if r is empty.
func opMember(r *kv.OpResult) (number byte, size int) {
	h := header{revision: r.Revision}
	switch {
	case r.Range != nil:
		return 1, (&rangeResponse{header: h, result: *r.Range}).sizeWire()
	case r.Put != nil:
		return 2, (&putResponse{header: h, prev: r.Put.Prev}).sizeWire()
	case r.Delete != nil:
		return 3, (&deleteResponse{header: h, result: r.Delete}).sizeWire()
	case r.Txn != nil:
		return 4, sizeTxn(&header{}, r.Txn)
	}
	return 0, -1
}

// keepAliveResponse is LeaseKeepAliveResponse: header=1 ID=2 TTL=3.
type keepAliveResponse struct {
	header header
	id     kv.LeaseID
	ttl    int64
}

func (r *keepAliveResponse) sizeWire() int {
	return sizeMessage(r.header.sizeWire()) + sizeUint(uint64(r.id)) + sizeUint(uint64(r.ttl))
}

func (r *keepAliveResponse) appendWire(dst []byte) []byte {
	dst = r.header.appendWire(appendLength(dst, 1, r.header.sizeWire()))
	dst = appendUint(dst, 2, uint64(r.id))
	return appendUint(dst, 3, uint64(r.ttl))
}

// headerResponse is any response that has nothing but a header=1.
type headerResponse struct{ header header }

func (r *headerResponse) sizeWire() int { return sizeMessage(r.header.sizeWire()) }

func (r *headerResponse) appendWire(dst []byte) []byte {
	return r.header.appendWire(appendLength(dst, 1, r.header.sizeWire()))
}
