package frozen

import (
	"bytes"
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
)

// Form is one form of bytes, for Obey.
type Form struct {
	Name string
	// Value is an encoded value that stands alone.
	Value []byte
	// Decode decodes such a value and returns it encoded again.
	Decode func(src []byte) (again []byte, err error)
	// Damage is the error for bytes that no build wrote, by errors.Is.
	Damage error
	// Later are the bytes of Value in which a number, a kind, a flag or a value of an enumeration stands, each with the lowest
	// number that only a later build knows, or with a flag that it does not know.
	Later map[int]byte
	// Open says that a later build may put more behind the value, which this one passes over: a hello alone.
	Open bool
}

// Obey checks the rule of docs/formats.md ("What a decoder does with what it does not know"):
//
//  1. A number, a kind, a flag or a value of an enumeration that this build does not know is level.ErrLater, and not damage.
//  2. A byte behind the value is damage, and not a later build's: its number says how a form ends.
//  3. No byte is passed over: one that is changed either fails, with one of these two errors, or is in what was decoded.
func (f *Form) Obey(t testing.TB) {
	t.Helper()
	if again, err := f.Decode(f.Value); err != nil || !bytes.Equal(again, f.Value) {
		t.Errorf("%s: %x decodes to %x, %v", f.Name, f.Value, again, err)
		return
	}
	for at, value := range f.Later {
		changed := bytes.Clone(f.Value)
		changed[at] = value
		if _, err := f.Decode(changed); !errors.Is(err, level.ErrLater) || errors.Is(err, f.Damage) {
			t.Errorf("%s: with %d at %d, as a later build may write, got %v", f.Name, value, at, err)
		}
	}
	for _, more := range []string{"\x00", "\x01", "\xff\xff\xff\xff"} {
		_, err := f.Decode(append(bytes.Clone(f.Value), more...))
		if f.Open != (err == nil) || err != nil && (!errors.Is(err, f.Damage) || errors.Is(err, level.ErrLater)) {
			t.Errorf("%s: with %x behind it, got %v", f.Name, more, err)
		}
	}
	f.misses(t)
}

// misses is part 3 of the rule.
func (f *Form) misses(t testing.TB) {
	t.Helper()
	for at := range f.Value {
		for value := range 256 {
			changed := bytes.Clone(f.Value)
			if changed[at] = byte(value); f.Value[at] == byte(value) || overlong(changed, at) {
				continue
			}
			again, err := f.Decode(changed)
			switch {
			case err == nil && !bytes.Equal(again, changed):
				t.Errorf("%s: with %#02x at %d, %x is taken as %x", f.Name, value, at, changed, again)
				return
			case err != nil && !errors.Is(err, level.ErrLater) && !errors.Is(err, f.Damage):
				t.Errorf("%s: with %#02x at %d, got %v", f.Name, value, at, err)
				return
			}
		}
	}
}

// overlong reports whether a change may have made a varint longer than it need be, which says the same.
func overlong(b []byte, at int) bool {
	return at+1 < len(b) && b[at] >= 0x80 && b[at+1] == 0 || at > 0 && b[at] == 0 && b[at-1] >= 0x80
}
