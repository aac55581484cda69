package mvcc

import (
	"bytes"
	"encoding/binary"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Tables of the engine that belong to this package. All other table bytes but 0x00 are free for Writer.Set.
//
//	'd' | escaped user key | 0x00 0x01 | ^main (8) | ^sub (4)   -> record (record.go)     versions, newest first
//	'r' | main (8) | sub (4)                                    -> change (change.go)     changes, oldest first
//	'r' | main (8) | sub (4)                                    -> changes (pack.go)      changes up to this one
//	'm' | name                                                  -> numbers of the store
const (
	tableVersions = engine.VersionedTable
	tableChanges  = 'r'
	tableNumbers  = 'm'

	suffixLen    = engine.SuffixLen
	changeKeyLen = 1 + suffixLen
	maxSub       = 1<<32 - 1
)

// maxRev is above every change.
var maxRev = kv.Rev{Main: kv.MaxRevision, Sub: maxSub}

// allOf is the last change of a revision.
func allOf(rev kv.Revision) kv.Rev { return kv.Rev{Main: rev, Sub: maxSub} }

func later(a, b kv.Rev) bool { return a.Main > b.Main || a.Main == b.Main && a.Sub > b.Sub }

// appendPrefix appends the key of the version table without its suffix. The escape keeps the order of user keys: 0x00
// becomes 0x00 0xff, and the terminator 0x00 0x01 sorts before every continuation.
func appendPrefix(dst, user []byte) []byte {
	dst = append(dst, tableVersions)
	for {
		i := bytes.IndexByte(user, 0)
		if i < 0 {
			break
		}
		dst = append(dst, user[:i]...)
		for user = user[i:]; len(user) > 0 && user[0] == 0; user = user[1:] { // a search for each zero byte would cost much
			dst = append(dst, 0, 0xff)
		}
	}
	return append(append(dst, user...), 0, 1)
}

// appendRev appends the inverted position, so that newer versions come first.
func appendRev(dst []byte, rev kv.Rev) []byte {
	checkSub(rev)
	dst = binary.BigEndian.AppendUint64(dst, ^uint64(rev.Main))
	return binary.BigEndian.AppendUint32(dst, ^uint32(rev.Sub))
}

func checkSub(rev kv.Rev) {
	if rev.Sub < 0 || rev.Sub > maxSub {
		invariant.Broken("sub revision %d of revision %d fits 32 bits", rev.Sub, rev.Main)
	}
}

func appendVersionKey(dst, user []byte, rev kv.Rev) []byte {
	return appendRev(appendPrefix(dst, user), rev)
}

// splitVersionKey cuts a key of the version table into prefix and position.
func splitVersionKey(key []byte) (prefix []byte, rev kv.Rev, ok bool) {
	n := len(key) - suffixLen
	if n < 3 || key[0] != tableVersions || key[n-2] != 0 || key[n-1] != 1 {
		return nil, kv.Rev{}, false
	}
	rev.Main = kv.Revision(^binary.BigEndian.Uint64(key[n:]))
	rev.Sub = int64(^binary.BigEndian.Uint32(key[n+8:]))
	return key[:n], rev, true
}

// appendUser reverses appendPrefix.
func appendUser(dst, prefix []byte) ([]byte, bool) {
	if len(prefix) < 3 || prefix[0] != tableVersions {
		return dst, false
	}
	body, end := prefix[1:len(prefix)-2], prefix[len(prefix)-2:]
	if end[0] != 0 || end[1] != 1 {
		return dst, false
	}
	for {
		i := bytes.IndexByte(body, 0)
		if i < 0 {
			return append(dst, body...), true
		}
		if i+1 >= len(body) || body[i+1] != 0xff {
			return dst, false
		}
		dst = append(append(dst, body[:i]...), 0)
		body = body[i+2:]
	}
}

func appendChangeKey(dst []byte, rev kv.Rev) []byte {
	checkSub(rev)
	dst = append(dst, tableChanges)
	dst = binary.BigEndian.AppendUint64(dst, uint64(rev.Main))
	return binary.BigEndian.AppendUint32(dst, uint32(rev.Sub))
}

func decodeChangeKey(key []byte) (kv.Rev, bool) {
	if len(key) != changeKeyLen || key[0] != tableChanges {
		return kv.Rev{}, false
	}
	return kv.Rev{
		Main: kv.Revision(binary.BigEndian.Uint64(key[1:])),
		Sub:  int64(binary.BigEndian.Uint32(key[9:])),
	}, true
}

// isSingle, isOpenEnded and isEmptyRange are etcd's rules for a range's end.
func isSingle(end []byte) bool    { return len(end) == 0 }
func isOpenEnded(end []byte) bool { return len(end) == 1 && end[0] == 0 }
func isEmptyRange(key, end []byte) bool {
	return !isSingle(end) && !isOpenEnded(end) && bytes.Compare(end, key) <= 0
}

// inRange reports whether user lies in the range of key and end.
func inRange(user, key, end []byte) bool {
	switch {
	case isSingle(end):
		return bytes.Equal(user, key)
	case bytes.Compare(user, key) < 0:
		return false
	}
	return isOpenEnded(end) || bytes.Compare(user, end) < 0
}

// versionBounds returns the engine bounds of a range.
func versionBounds(key, end []byte) (lower, upper []byte) {
	lower = appendPrefix(make([]byte, 0, len(key)+8), key)
	switch {
	case isSingle(end):
		upper = append(make([]byte, 0, len(lower)), lower...)
		upper[len(upper)-1]++ // terminator 0x00 0x02: above all suffixes, below all longer keys (0x00 0xff)
	case isOpenEnded(end):
		upper = []byte{tableVersions + 1}
	default:
		upper = appendPrefix(make([]byte, 0, len(end)+8), end)
	}
	return lower, upper
}
