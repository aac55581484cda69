package rpc

import (
	"google.golang.org/grpc/mem"

	"github.com/quorate/quorate/internal/kv"
)

// watchResponse is WatchResponse: header=1 watch_id=2 created=3 canceled=4 compact_revision=5 cancel_reason=6
// fragment=7 events=11. The events come encoded, last on the wire, so that all watchers of one change share the bytes.
type watchResponse struct {
	header          header
	id              int64
	created         bool
	canceled        bool
	fragment        bool
	compactRevision kv.Revision
	cancelReason    string
	events          []byte // encoded as fields of a WatchResponse, shared: never written to again
}

func (r *watchResponse) sizePrefix() int {
	return sizeMessage(r.header.sizeWire()) + sizeUint(uint64(r.id)) + sizeBool(r.created) + sizeBool(r.canceled) +
		sizeUint(uint64(r.compactRevision)) + sizeBytes(len(r.cancelReason)) + sizeBool(r.fragment)
}

func (r *watchResponse) sizeWire() int { return r.sizePrefix() + len(r.events) }

func (r *watchResponse) appendPrefix(dst []byte) []byte {
	dst = r.header.appendWire(appendLength(dst, 1, r.header.sizeWire()))
	dst = appendUint(dst, 2, uint64(r.id))
	dst = appendBool(dst, 3, r.created)
	dst = appendBool(dst, 4, r.canceled)
	dst = appendUint(dst, 5, uint64(r.compactRevision))
	dst = appendBytes(dst, 6, []byte(r.cancelReason))
	return appendBool(dst, 7, r.fragment)
}

func (r *watchResponse) appendWire(dst []byte) []byte {
	return append(r.appendPrefix(dst), r.events...)
}

// sharedEventsBytes is the size from which events are handed to gRPC as a buffer of their own instead of being copied
// behind the prefix: below it one more buffer costs more than the copy.
const sharedEventsBytes = 512

// buffers gives the encoding without copying large events.
func (r *watchResponse) buffers() mem.BufferSlice {
	if len(r.events) < sharedEventsBytes {
		return mem.BufferSlice{mem.SliceBuffer(r.appendWire(make([]byte, 0, r.sizeWire())))}
	}
	prefix := r.appendPrefix(make([]byte, 0, r.sizePrefix()))
	return mem.BufferSlice{mem.SliceBuffer(prefix), mem.SliceBuffer(r.events)}
}

// Event: type=1 kv=2 prev_kv=3.

func sizeEvent(e *kv.Event, withPrev bool) int {
	size := sizeUint(uint64(e.Kind)) + sizeMessage(sizeKeyValue(&e.KV))
	if withPrev && e.Prev != nil {
		size += sizeMessage(sizeKeyValue(e.Prev))
	}
	return size
}

// sizeEventField is the size of e as a field of a WatchResponse.
func sizeEventField(e *kv.Event, withPrev bool) int { return sizeMessage(sizeEvent(e, withPrev)) }

// appendEventField writes e as a field of a WatchResponse.
func appendEventField(dst []byte, e *kv.Event, withPrev bool) []byte {
	dst = appendLength(dst, 11, sizeEvent(e, withPrev))
	dst = appendUint(dst, 1, uint64(e.Kind))
	dst = appendKeyValueField(dst, 2, &e.KV)
	if withPrev && e.Prev != nil {
		dst = appendKeyValueField(dst, 3, e.Prev)
	}
	return dst
}

// encodeEvents writes a batch of events as fields of a WatchResponse.
func encodeEvents(events []kv.Event, withPrev bool) []byte {
	size := 0
	for i := range events {
		size += sizeEventField(&events[i], withPrev)
	}
	dst := make([]byte, 0, size)
	for i := range events {
		dst = appendEventField(dst, &events[i], withPrev)
	}
	return dst
}
