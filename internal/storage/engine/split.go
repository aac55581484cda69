package engine

import (
	"bytes"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// The versioned table. Its keys are
//
//	'd' | escaped user key | 0x00 0x01 | suffix
//	 1          n               2         12
//
// where the escaped part has 0xff after each 0x00, so that 0x00 0x01 occurs nowhere but as the terminator. That makes
// the order of whole keys the order of bytes, and the suffix recognisable from the end of the key.
const (
	VersionedTable = 'd'
	SuffixLen      = 12
	terminatorLen  = 2
)

// comparerName is part of the store on disk: a store with another name is refused.
const comparerName = "quorate.versioned.1"

// Split returns the length of the key's prefix: what NextPrefix skips and filters know. Keys of other tables are all
// prefix.
func Split(key []byte) int {
	n := len(key) - SuffixLen
	if n < 1+terminatorLen || key[0] != VersionedTable || key[n-2] != 0 || key[n-1] != 1 {
		return len(key)
	}
	return n
}

// comparer orders bytewise. Separators never cut into a suffix, since a shortened suffix would be taken for prefix.
var comparer = &pebble.Comparer{
	Name:                 comparerName,
	Split:                Split,
	Compare:              bytes.Compare,
	Equal:                bytes.Equal,
	ComparePointSuffixes: bytes.Compare,
	CompareRangeSuffixes: bytes.Compare,
	AbbreviatedKey:       abbreviate,
	FormatKey:            pebble.DefaultComparer.FormatKey,
	Separator:            separate,
	Successor:            succeed,
	ImmediateSuccessor:   immediateSuccessor,
}

// abbreviate packs the first eight bytes so that numbers compare as keys do.
func abbreviate(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var padded [8]byte
	copy(padded[:], key)
	return binary.BigEndian.Uint64(padded[:])
}

// separate finds a short key k with a <= k < b for index blocks.
func separate(dst, a, b []byte) []byte {
	prefixA, prefixB := a[:Split(a)], b[:Split(b)]
	shared := 0
	for shared < len(prefixA) && shared < len(prefixB) && prefixA[shared] == prefixB[shared] {
		shared++
	}
	if shared >= len(prefixA) || shared >= len(prefixB) || prefixA[shared]+1 >= prefixB[shared] {
		return append(dst, a...)
	}
	dst = append(dst, prefixA[:shared]...)
	return append(dst, prefixA[shared]+1)
}

// succeed finds a short key k >= a for the end of an index.
func succeed(dst, a []byte) []byte {
	for i, c := range a[:Split(a)] {
		if c != 0xff {
			return append(append(dst, a[:i]...), c+1)
		}
	}
	return append(dst, a...)
}

// immediateSuccessor gives the least prefix above a, which must sort above all keys with the prefix a, too: behind the
// terminator 0x00 0x01 that is 0x00 0x02, while a longer key would fall among the suffixes.
func immediateSuccessor(dst, a []byte) []byte {
	dst = append(dst, a...)
	if n := len(a); n >= 1+terminatorLen && a[0] == VersionedTable && a[n-2] == 0 && a[n-1] == 1 {
		dst[len(dst)-1] = 2
		return dst
	}
	return append(dst, 0)
}
