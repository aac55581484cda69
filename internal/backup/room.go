package backup

import (
	"bytes"
	"fmt"
	"unsafe"
)

// TooLargeError means that reading an object would take more memory than there is for it. It says nothing of whether the
// object is damaged.
type TooLargeError struct {
	Bytes, Most int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("reading it takes %d bytes of memory, and there are %d", e.Bytes, e.Most)
}

// Anybody who can write to a place can put an object that is small there, and large once it is read. So what an object
// becomes is told from its bytes before anything is allocated for it.
const (
	// manifestCopies is how many times the bytes of a manifest are held while it is read, its texts among them.
	manifestCopies = 4
	// elementBytes is what an element of a list takes, while the list grows.
	elementBytes = 4 * int64(unsafe.Sizeof(File{}))
	// itemBytes is what an entry of a segment takes beside its bytes.
	itemBytes = int64(unsafe.Sizeof(Item{}))
	// maxElements bounds the elements of all lists of a manifest; some may be of fields that this build does not know.
	maxElements = MaxFiles + 1<<10
	// maxDepth bounds lists within lists.
	maxDepth = 64
)

// ManifestWithin is the largest manifest that can be read in so many bytes of memory; zero: any one.
func ManifestWithin(most int64) int64 {
	if most <= 0 {
		return MaxManifestBytes
	}
	return min(MaxManifestBytes, most/manifestCopies)
}

// fitsJSON refuses what would become more than a manifest is, or more than most, if that is not zero.
func fitsJSON(content []byte, most int64) error {
	elements, ok := elementsOf(content)
	if !ok || elements > maxElements {
		return fmt.Errorf("%w: it has lists of %d elements", ErrDamaged, elements)
	}
	if bytes := manifestCopies*int64(len(content)) + elementBytes*int64(elements); most > 0 && bytes > most {
		return &TooLargeError{bytes, most}
	}
	return nil
}

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
