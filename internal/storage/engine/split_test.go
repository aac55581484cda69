package engine

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// The comparer keeps Pebble's rules for keys made of two names and two suffixes.
func FuzzComparer(f *testing.F) {
	f.Add([]byte("a"), []byte("a\x00"), []byte("0123456789ab"), []byte("0123456789ab"))
	f.Add([]byte("\x00\x01"), []byte("\x00"), bytes.Repeat([]byte{0}, 12), bytes.Repeat([]byte{0xff}, 12))
	f.Fuzz(func(t *testing.T, nameA, nameB, suffixA, suffixB []byte) {
		if len(suffixA) < SuffixLen || len(suffixB) < SuffixLen {
			return
		}
		prefixA, prefixB := escaped(nameA), escaped(nameB)
		a := append(bytes.Clone(prefixA), suffixA[:SuffixLen]...)
		b := append(bytes.Clone(prefixB), suffixB[:SuffixLen]...)
		if Split(a) != len(prefixA) || Split(prefixA) != len(prefixA) {
			t.Fatalf("split of %x is %d, of its prefix %d", a, Split(a), Split(prefixA))
		}
		if order := bytes.Compare(nameA, nameB); order != 0 && bytes.Compare(a, b) != order {
			t.Fatalf("names %x and %x do not order as their keys", nameA, nameB)
		}
		if next := comparer.ImmediateSuccessor(nil, prefixA); bytes.Compare(next, a) <= 0 || Split(next) != len(next) {
			t.Fatalf("successor %x of the prefix of %x", next, a)
		}
		if bytes.Compare(a, b) > 0 {
			a, b = b, a
		}
		if !bytes.Equal(a, b) {
			checkBetween(t, comparer.Separator(nil, a, b), a, b)
		}
		checkBetween(t, comparer.Successor(nil, a), a, nil)
		if x, y := comparer.AbbreviatedKey(a), comparer.AbbreviatedKey(b); x > y {
			t.Fatalf("abbreviations %x, %x of %x, %x", x, y, a, b)
		}
	})
}

func escaped(name []byte) []byte {
	key := []byte{VersionedTable}
	key = append(key, bytes.ReplaceAll(name, []byte{0}, []byte{0, 0xff})...)
	return append(key, 0, 1)
}

// checkBetween wants a <= k < b, for the prefixes, too.
func checkBetween(t *testing.T, k, a, b []byte) {
	t.Helper()
	prefix := func(k []byte) []byte { return pebble.Split(Split).Prefix(k) }
	if bytes.Compare(a, k) > 0 || bytes.Compare(prefix(a), prefix(k)) > 0 {
		t.Fatalf("%x is below %x", k, a)
	}
	if b != nil && (bytes.Compare(k, b) >= 0 || bytes.Compare(prefix(k), prefix(b)) > 0) {
		t.Fatalf("%x is not below %x", k, b)
	}
}

func FuzzDecodeMemFile(f *testing.F) {
	f.Add([]byte(memMagic + "\x01\x01a\x01b0000"))
	f.Fuzz(func(t *testing.T, buf []byte) {
		tree := newMemTree()
		if decodeMemFile(buf, tree) != nil {
			return
		}
		tree.Scan(func(item memItem) bool {
			if len(item.key)+len(item.value) > len(buf) {
				t.Fatal("an item is larger than the file")
			}
			return true
		})
	})
}
