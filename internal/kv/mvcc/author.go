package mvcc

import (
	"bytes"
	"encoding/binary"

	"github.com/quorate/quorate/internal/kv"
)

// Binary form of a kv.Author, in the list at the head of a pack:
//
//	flags (1) | member (8, little-endian) | [uvarint length of the user | user]
const (
	authorClient  = 1
	authorExpired = 2
	authorUser    = 4 // the user follows
	authorCut     = 8 // of the user only the first bytes are kept

	authorFlags = authorClient | authorExpired | authorUser | authorCut
	authorHead  = 9
)

// appendAuthor appends the binary form.
func appendAuthor(dst []byte, by *kv.Author) []byte {
	flags, user := byte(0), by.User
	cut := by.Cut && len(user) == kv.MostAuthorUser
	if len(user) > kv.MostAuthorUser {
		user, cut = user[:kv.MostAuthorUser], true
	}
	for _, f := range [...]struct {
		set bool
		bit byte
	}{{by.Client, authorClient}, {by.Expired, authorExpired}, {user != "", authorUser}, {cut, authorCut}} {
		if f.set {
			flags |= f.bit
		}
	}
	dst = binary.LittleEndian.AppendUint64(append(dst, flags), by.Member)
	if user == "" {
		return dst
	}
	return append(binary.AppendUvarint(dst, uint64(len(user))), user...)
}

// authorLen is the length of the first author of a list, zero if it is none.
func authorLen(list []byte) int {
	if len(list) < authorHead || list[0]&^authorFlags != 0 {
		return 0
	}
	cut := list[0]&authorCut != 0
	if list[0]&authorUser == 0 {
		if cut {
			return 0
		}
		return authorHead
	}
	size, n := binary.Uvarint(list[authorHead:])
	if n <= 0 || size == 0 || size > kv.MostAuthorUser || cut && size != kv.MostAuthorUser {
		return 0
	}
	if whole := authorHead + n + int(size); whole <= len(list) && n == uvarintLen(size) {
		return whole
	}
	return 0
}

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// decodeAuthor decodes an author whose length authorLen gave.
func decodeAuthor(src []byte) kv.Author {
	by := kv.Author{Client: src[0]&authorClient != 0, Expired: src[0]&authorExpired != 0, Cut: src[0]&authorCut != 0,
		Member: binary.LittleEndian.Uint64(src[1:])}
	if src[0]&authorUser != 0 {
		_, n := binary.Uvarint(src[authorHead:])
		by.User = string(src[authorHead+n:])
	}
	return by
}

// authors are the authors of the changes of a pack, each once, in the order in which they came.
type authors struct {
	list     []byte // encoded, one behind the other
	count    int
	at       int // index of the author of the last change
	from, to int // where it is in list
}

func (a *authors) reset() { a.list, a.count, a.at, a.from, a.to = a.list[:0], 0, 0, 0, 0 }

// isLast reports whether the last change has this author.
func (a *authors) isLast(by []byte) bool { return bytes.Equal(a.list[a.from:a.to], by) }

// find moves to an author of the list; false: it is not there.
func (a *authors) find(by []byte) bool {
	if a.count > 0 && a.isLast(by) {
		return true
	}
	for at, from := 0, 0; from < len(a.list); at++ {
		to := from + authorLen(a.list[from:])
		if bytes.Equal(a.list[from:to], by) {
			a.at, a.from, a.to = at, from, to
			return true
		}
		from = to
	}
	return false
}

// grows returns how much longer the list becomes by an author.
func (a *authors) grows(by []byte) int {
	if moved := *a; moved.find(by) {
		return 0
	}
	return len(by)
}

// note moves to an author, who is added if need be.
func (a *authors) note(by []byte) {
	if a.find(by) {
		return
	}
	a.at, a.from = a.count, len(a.list)
	a.list = append(a.list, by...)
	a.to = len(a.list)
	a.count++
}

// openAuthors splits the list from the rest of a row.
func openAuthors(row []byte) (a authors, rest []byte, ok bool) {
	if len(row) == 0 || row[0] == 0 {
		return a, nil, false
	}
	end := 1
	for range row[0] {
		n := authorLen(row[end:])
		if n == 0 {
			return a, nil, false
		}
		end += n
	}
	a.list, a.count = row[1:end], int(row[0])
	a.to = authorLen(a.list)
	return a, row[end:], true
}

// move moves to the author with an index; false if there is none, or it is the one before.
func (a *authors) move(index int) bool {
	if index >= a.count || index == a.at {
		return false
	}
	if index < a.at {
		a.at, a.from, a.to = 0, 0, authorLen(a.list)
	}
	for ; a.at < index; a.at++ {
		a.from, a.to = a.to, a.to+authorLen(a.list[a.to:])
	}
	return true
}

// current is the encoded author of the last change; empty: it is not known.
func (a *authors) current() []byte { return a.list[a.from:a.to] }
