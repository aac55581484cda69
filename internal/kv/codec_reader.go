package kv

import (
	"encoding/binary"

	"github.com/quorate/quorate/internal/base/level"
)

// reader takes fields off the front of src. After the first fault every method returns zero, so that a decoder reads all fields
// and checks once, at the end.
type reader struct {
	src   []byte
	bad   bool
	later bool // the first fault is something of a later build
	depth int
}

func (r *reader) fail() {
	r.bad = true
	r.src = nil
}

// unknown is fail for what a later build may have written.
func (r *reader) unknown() {
	r.later = r.later || !r.bad
	r.fail()
}

// known is unknown unless ok.
func (r *reader) known(ok bool) {
	if !ok {
		r.unknown()
	}
}

// shown fails for a field that a flag announces, and that is zero: no encoder writes it.
func (r *reader) shown(ok bool) {
	if !ok {
		r.fail()
	}
}

// finish reports a fault, or bytes that are left over: level.ErrLater, or errMalformed.
func (r *reader) finish() error {
	if r.later {
		return level.ErrLater
	}
	if r.bad || len(r.src) != 0 {
		return errMalformed
	}
	return nil
}

func (r *reader) byte() byte {
	if len(r.src) == 0 {
		r.fail()
		return 0
	}
	b := r.src[0]
	r.src = r.src[1:]
	return b
}

// flags reads a byte of booleans; bits outside known belong to a later format and are refused.
func (r *reader) flags(known byte) byte {
	b := r.byte()
	if b&^known != 0 {
		r.unknown()
	}
	return b
}

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.src)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.src = r.src[size:]
	return n
}

func (r *reader) varint() int64 {
	n, size := binary.Varint(r.src)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.src = r.src[size:]
	return n
}

// maxSeconds bounds a time in the binary form: 68 years.
const maxSeconds = 1<<31 - 1

func (r *reader) seconds() int64 {
	n := r.uvarint()
	if n > maxSeconds {
		r.fail()
		return 0
	}
	return int64(n)
}

func (r *reader) revision() Revision { return Revision(r.varint()) }

// bytes returns the next byte string, nil if it is empty. It aliases the input, capped so that appending to it copies.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.src)) {
		r.fail()
		return nil
	}
	if n == 0 {
		return nil
	}
	b := r.src[:n:n]
	r.src = r.src[n:]
	return b
}

func (r *reader) hash() (h [32]byte) {
	if len(r.src) < len(h) {
		r.fail()
		return h
	}
	r.src = r.src[copy(h[:], r.src):]
	return h
}

// count reads the length of a list whose elements take at least minBytes each; more than could follow is a fault.
func (r *reader) count(minBytes int) int {
	n := r.uvarint()
	if n > uint64(len(r.src)/minBytes) {
		r.fail()
		return 0
	}
	return int(n)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendRevision(dst []byte, rev Revision) []byte { return binary.AppendVarint(dst, int64(rev)) }

// flag returns bit if on.
func flag(on bool, bit byte) byte {
	if on {
		return bit
	}
	return 0
}
