package backup

import (
	"bytes"
	"fmt"
)

// TooLargeError means that reading an object would take more memory than there is for it. It says nothing of whether the
// object is damaged.
type TooLargeError struct {
	Bytes, Most int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("reading it takes %d bytes of memory, and there are %d", e.Bytes, e.Most)
}

// RoomError means that there is no room on the disk for what an object becomes. It says nothing of whether the object is
// damaged.
type RoomError struct{ Err error }

func (e *RoomError) Error() string { return e.Err.Error() }
func (e *RoomError) Unwrap() error { return e.Err }

// Anybody who can write to a place can put an object that is small there, and large once it is read. So what an object
// becomes is told from its bytes before anything is allocated for it.

// jsonCopies is how many times the bytes of a JSON object are held while it is read, its texts among them.
const jsonCopies = 4

// jsonShape bounds the lists of a JSON object.
type jsonShape struct {
	elements     int   // of all lists
	elementBytes int64 // what each takes, while its list grows
}

// fits refuses what would become more than its form allows, or more than most, if that is not zero.
func (s jsonShape) fits(content []byte, most int64) error {
	elements, ok := elementsOf(content)
	if !ok || elements > s.elements {
		return fmt.Errorf("%w: it has lists of %d elements", ErrDamaged, elements)
	}
	if bytes := jsonCopies*int64(len(content)) + s.elementBytes*int64(elements); most > 0 && bytes > most {
		return &TooLargeError{bytes, most}
	}
	return nil
}

// maxDepth bounds lists within lists.
const maxDepth = 64

// elementsOf counts the elements of all lists in a JSON text; false: they lie too deep. Of what is no JSON the number means
// nothing.
func elementsOf(text []byte) (elements int, ok bool) {
	var lists [maxDepth]bool // whether the brackets around are those of a list
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth == maxDepth {
				return elements, false
			}
			if lists[depth] = text[i] == '['; lists[depth] {
				elements++
			}
			depth++
		case '}', ']':
			depth = max(0, depth-1)
		case ',':
			if depth > 0 && lists[depth-1] {
				elements++
			}
		}
	}
	return elements, true
}

// excerptBytes bounds what an error repeats of an object.
const excerptBytes = 100

// excerpt is the beginning of a text.
func excerpt[T string | []byte](text T) string {
	if len(text) <= excerptBytes {
		return string(text)
	}
	return string(bytes.ToValidUTF8([]byte(text[:excerptBytes]), nil)) + "..."
}
