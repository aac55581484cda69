package mvcc

import (
	"bytes"
	"testing"

	"github.com/quorate/quorate/internal/kv"
)

// Version keys order by user key, then newest first, and decode to their parts.
func FuzzVersionKey(f *testing.F) {
	f.Add([]byte("a"), []byte("a\x00"), int64(1), int64(2), uint32(0), uint32(1))
	f.Add([]byte{0}, []byte{0, 1}, int64(5), int64(5), uint32(3), uint32(3))
	f.Add([]byte{0, 0xff}, []byte{0}, int64(5), int64(5), uint32(3), uint32(3))
	f.Fuzz(func(t *testing.T, userA, userB []byte, mainA, mainB int64, subA, subB uint32) {
		if mainA < 0 || mainB < 0 {
			return
		}
		a, b := kv.Rev{Main: kv.Revision(mainA), Sub: int64(subA)}, kv.Rev{Main: kv.Revision(mainB), Sub: int64(subB)}
		keyA, keyB := appendVersionKey(nil, userA, a), appendVersionKey(nil, userB, b)
		want := bytes.Compare(userA, userB)
		if want == 0 {
			switch {
			case a == b:
			case a.Main > b.Main || a.Main == b.Main && a.Sub > b.Sub:
				want = -1
			default:
				want = 1
			}
		}
		if got := bytes.Compare(keyA, keyB); got != want {
			t.Fatalf("%x at %v against %x at %v: got %d, want %d", userA, a, userB, b, got, want)
		}
		prefix, rev, ok := splitVersionKey(keyA)
		user, userOK := appendUser(nil, prefix)
		if !ok || !userOK || rev != a || !bytes.Equal(user, userA) {
			t.Fatalf("%x at %v comes back as %x at %v", userA, a, user, rev)
		}
		lower, upper := versionBounds(userA, nil)
		if inside := bytes.Compare(lower, keyB) <= 0 && bytes.Compare(keyB, upper) < 0; inside != bytes.Equal(userA, userB) {
			t.Fatalf("bounds of %x hold %x: %v", userA, userB, inside)
		}
		if lower, upper = versionBounds(userA, userB); len(userB) > 0 && !isOpenEnded(userB) {
			inside := bytes.Compare(lower, keyA) <= 0 && bytes.Compare(keyA, upper) < 0
			if inside != inRange(userA, userA, userB) {
				t.Fatalf("bounds of %x to %x hold the first: %v", userA, userB, inside)
			}
		}
	})
}

// Decoding never panics, and a decoded record encodes to a row that decodes to the same.
func FuzzDecodeRecord(f *testing.F) {
	f.Add([]byte{1}, int64(5))
	f.Add([]byte{2, 1, 1, 3, 'x'}, int64(5))
	f.Fuzz(func(t *testing.T, row []byte, mod int64) {
		if mod < 0 {
			return
		}
		rec, err := decodeRecord(row, kv.Revision(mod))
		if err != nil {
			return
		}
		again, err := decodeRecord(appendRecord(nil, &rec, kv.Revision(mod)), kv.Revision(mod))
		if err != nil || again.tombstone != rec.tombstone || again.create != rec.create || again.version != rec.version ||
			again.lease != rec.lease || !bytes.Equal(again.value, rec.value) {
			t.Fatalf("%+v comes back as %+v, %v", rec, again, err)
		}
		if got := recordLen(&rec, kv.Revision(mod)); got != len(appendRecord(nil, &rec, kv.Revision(mod))) {
			t.Fatalf("length of %+v: got %d", rec, got)
		}
	})
}

func FuzzAppendUser(f *testing.F) {
	f.Add([]byte("da\x00\xff\x00\x01"))
	f.Fuzz(func(t *testing.T, prefix []byte) {
		if user, ok := appendUser(nil, prefix); ok && !bytes.Equal(appendPrefix(nil, user), prefix) {
			t.Fatalf("%x decodes to %x, which encodes to %x", prefix, user, appendPrefix(nil, user))
		}
	})
}
