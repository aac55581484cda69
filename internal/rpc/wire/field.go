package wire

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quorate/quorate/internal/kv"
)

// Encoder is a response that writes its own protobuf encoding.
type Encoder interface {
	// SizeWire is the exact length of what AppendWire appends.
	SizeWire() int
	AppendWire(dst []byte) []byte
}

// Decoder is a request that reads its own protobuf encoding. It may alias src, which no goroutine modifies or reuses.
type Decoder interface {
	DecodeWire(src []byte) error
}

// errWire is what a request that is not valid protobuf gives, as it does in the protobuf library.
var errWire = errors.New("proto: cannot parse invalid wire-format data")

// Tags are written as constants: field number and wire type in one byte. All fields below 16 fit.
const (
	wireVarint = 0
	wireBytes  = 2
)

// sizeUint is the length of a varint field with a one-byte tag; zero is not written.
func sizeUint(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(v)
}

// sizeBool is the length of a bool field with a one-byte tag.
func sizeBool(v bool) int {
	if v {
		return 2
	}
	return 0
}

// sizeBytes is the length of a bytes field with a one-byte tag; empty is not written.
func sizeBytes(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(uint64(n)) + n
}

// SizeMessage is the length of a message field with a one-byte tag; an empty message is written.
func SizeMessage(n int) int { return 1 + protowire.SizeVarint(uint64(n)) + n }

func appendUint(dst []byte, field byte, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(append(dst, field<<3|wireVarint), v)
}

func appendBool(dst []byte, field byte, v bool) []byte {
	if !v {
		return dst
	}
	return append(dst, field<<3|wireVarint, 1)
}

func appendBytes(dst []byte, field byte, v []byte) []byte {
	if len(v) == 0 {
		return dst
	}
	dst = protowire.AppendVarint(append(dst, field<<3|wireBytes), uint64(len(v)))
	return append(dst, v...)
}

// appendLength begins a message field of n bytes.
func appendLength(dst []byte, field byte, n int) []byte {
	return protowire.AppendVarint(append(dst, field<<3|wireBytes), uint64(n))
}

// field is one field of a message being read: either number (a varint) or bytes is set. Other wire types are passed
// over by readField, as the protobuf library treats known fields of a foreign type as unknown.
type field struct {
	number protowire.Number
	varint uint64
	bytes  []byte
	kind   protowire.Type
}

// readField takes the next field off src. Fields that are neither varint nor bytes come back with their kind, and
// every caller ignores them.
func readField(src []byte) (field, []byte, error) {
	number, kind, n := protowire.ConsumeTag(src)
	if n < 0 || number > protowire.MaxValidNumber {
		return field{}, nil, errWire
	}
	src = src[n:]
	f := field{number: number, kind: kind}
	switch kind {
	case protowire.VarintType:
		f.varint, n = protowire.ConsumeVarint(src)
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(src)
	default:
		n = protowire.ConsumeFieldValue(number, kind, src)
	}
	if n < 0 {
		return field{}, nil, errWire
	}
	return f, src[n:], nil
}

// isVarint and isBytes tell whether f has the type that its field should have.
func (f *field) isVarint() bool { return f.kind == protowire.VarintType }
func (f *field) isBytes() bool  { return f.kind == protowire.BytesType }

// KeyValue: key=1 create_revision=2 mod_revision=3 version=4 value=5 lease=6.

func sizeKeyValue(p *kv.KeyValue) int {
	return sizeBytes(len(p.Key)) + sizeUint(uint64(p.CreateRevision)) + sizeUint(uint64(p.ModRevision)) +
		sizeUint(uint64(p.Version)) + sizeBytes(len(p.Value)) + sizeUint(uint64(p.Lease))
}

func appendKeyValue(dst []byte, p *kv.KeyValue) []byte {
	dst = append(appendKeyValueHead(dst, p), p.Value...)
	return appendUint(dst, 6, uint64(p.Lease))
}

// appendKeyValueHead writes what comes before the bytes of the value.
func appendKeyValueHead(dst []byte, p *kv.KeyValue) []byte {
	dst = appendBytes(dst, 1, p.Key)
	dst = appendUint(dst, 2, uint64(p.CreateRevision))
	dst = appendUint(dst, 3, uint64(p.ModRevision))
	dst = appendUint(dst, 4, uint64(p.Version))
	if len(p.Value) == 0 {
		return dst
	}
	return appendLength(dst, 5, len(p.Value))
}

// appendKeyValueField writes p as a message field.
func appendKeyValueField(dst []byte, number byte, p *kv.KeyValue) []byte {
	return appendKeyValue(appendLength(dst, number, sizeKeyValue(p)), p)
}

func sizeKeyValues(all []kv.KeyValue) int {
	size := 0
	for i := range all {
		size += SizeMessage(sizeKeyValue(&all[i]))
	}
	return size
}

func appendKeyValues(dst []byte, number byte, all []kv.KeyValue) []byte {
	for i := range all {
		dst = appendKeyValueField(dst, number, &all[i])
	}
	return dst
}
