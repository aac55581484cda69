package h2

import (
	"bytes"
	"errors"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

const (
	tableBytes = 4096 // of the client's table of fields, the default
	// maxContinuations bounds the frames of one block: they need carry nothing.
	maxContinuations = 16
	// maxRemembered is how many fields the block may have that is remembered: a connection that does nothing is to keep little.
	maxRemembered = 32
)

// headerReader reads the fields of requests.
type headerReader struct {
	decoder  *hpack.Decoder
	most     int // bytes, unpacked
	left     int
	list     []hpack.HeaderField
	tooLarge bool

	// A block that is not complete yet.
	stream uint32 // zero: none
	ends   bool   // the stream, too
	block  []byte
	size   int // bytes of it that have come, packed
	frames int
	// How much of it was read: the fields, and their bytes, unpacked.
	count, unpacked int
	// skipped says that the block is longer than most, packed: it is read as it comes, for the table, and not kept.
	skipped bool

	// The last block, if it reads the same as long as the table does not change, which it does not do itself.
	last       []byte
	lastFields *Fields
}

func newHeaderReader(most int) *headerReader {
	h := &headerReader{most: most}
	h.decoder = hpack.NewDecoder(tableBytes, h.emit)
	h.decoder.SetMaxStringLength(skippedTimes * most)
	return h
}

// shown says that fields are written to standard error, as Go's HTTP/2 does with GODEBUG=http2debug=2.
var shown = slices.Contains(strings.Split(os.Getenv("GODEBUG"), ","), "http2debug=2")

func (h *headerReader) emit(f hpack.HeaderField) {
	if shown {
		log.Printf("http2: decoded hpack field %+v", f)
	}
	size := int(f.Size())
	h.count++
	h.unpacked += size
	if h.left -= size; h.left < 0 {
		h.tooLarge = true
		return
	}
	h.list = append(h.list, f)
}

// begin takes a HEADERS frame, without padding and priority; done if no CONTINUATION follows.
func (h *headerReader) begin(f *frame, block []byte) (done bool, err error) {
	h.skipped, h.size, h.frames, h.count, h.unpacked = false, 0, 0, 0, 0
	if f.has(flagEndHeaders) {
		h.block, h.ends, h.size = block, f.has(flagEndStream), len(block)
		return true, nil
	}
	h.stream, h.ends = f.stream, f.has(flagEndStream)
	h.block = nil
	return false, h.more(block)
}

const (
	// A block may have skippedTimes as many bytes as the fields of a call may have, packed or unpacked; with more the
	// connection ends. A block between the two is read, since it changes the table, and its call is refused.
	skippedTimes = 8
	// pieceBytes of a block are decoded at a time, and their fields counted: each byte may name a field of the table's size.
	pieceBytes = 1 << 10
	// So many fields of a block are charged as one frame is (conn.charge), and so are as many bytes that no field needs. The
	// payment of a call is enough for 256 fields: one byte makes one, and a call with very many is as much work as ten others.
	fieldsPerFrame = 16
)

// more takes a piece of a block.
func (h *headerReader) more(piece []byte) error {
	if h.size += len(piece); h.size > skippedTimes*h.most || h.frames > maxContinuations {
		return broken(EnhanceYourCalm, "the fields of a request are too long")
	}
	if !h.skipped && h.size <= h.most {
		h.block = append(h.block, piece...)
		return nil
	}
	if !h.skipped {
		h.skipped, h.list, h.left, h.lastFields = true, nil, 0, nil
		begun := h.block
		h.block = nil
		if err := h.decode(begun); err != nil {
			return err
		}
	}
	return h.decode(piece)
}

// decode reads fields, and stops once they are far beyond what a request may have: a byte may name kilobytes, and what is read
// of them for the table would cost as much as what is served.
func (h *headerReader) decode(block []byte) error {
	for len(block) > 0 {
		piece := block[:min(len(block), pieceBytes)]
		block = block[len(piece):]
		switch _, err := h.decoder.Write(piece); {
		case errors.Is(err, hpack.ErrStringLength):
			return broken(EnhanceYourCalm, "a field of a request is too long")
		case err != nil:
			return broken(CompressionError, "the fields of a request cannot be read")
		case h.unpacked > skippedTimes*h.most:
			return broken(EnhanceYourCalm, "the fields of a request are too large")
		}
	}
	return nil
}

// cost is what the block that was read costs its client beside its frame. A block that is longer than its fields has changes
// of the table's size, or a code that makes fields longer.
func (h *headerReader) cost() int {
	return (h.count + max(0, h.size-h.unpacked)) / fieldsPerFrame * idleFrame
}

// proceed takes a CONTINUATION frame.
func (h *headerReader) proceed(f *frame) (done bool, err error) {
	h.frames++
	err = h.more(f.payload)
	if f.has(flagEndHeaders) {
		h.stream = 0
		return true, err
	}
	return false, err
}

// fields reads the block that is complete; nil if there are too many. known says that they are those of the block before.
func (h *headerReader) fields() (_ *Fields, known bool, err error) {
	if h.lastFields != nil && !h.skipped && bytes.Equal(h.block, h.last) {
		return h.lastFields, true, nil
	}
	if h.lastFields = nil; !h.skipped {
		h.list, h.left, h.tooLarge = nil, h.most, false
		if err := h.decode(h.block); err != nil {
			return nil, false, err
		}
	}
	if err := h.decoder.Close(); err != nil {
		return nil, false, broken(CompressionError, "the fields of a request end early")
	}
	if h.skipped || h.tooLarge {
		h.list, h.block, h.skipped = nil, nil, false
		return nil, false, nil
	}
	fields := &Fields{List: h.list, length: -1, size: h.most - h.left}
	if !shown && len(h.list) <= maxRemembered && changesNothing(h.block) {
		h.last, h.lastFields = append(h.last[:0], h.block...), fields
	}
	h.block = nil
	return fields, false, nil
}

// changesNothing reports whether a block is nothing but references to fields that are in the tables, of one byte each (RFC
// 7541, section 6.1).
func changesNothing(block []byte) bool {
	for _, b := range block {
		if b <= 0x80 || b == 0xff {
			return false
		}
	}
	return true
}

// wellFormed checks the fields of a request as RFC 9113, sections 8.2 and 8.3, asks for.
func (f *Fields) wellFormed() bool {
	var method, scheme, path, regular bool
	for _, field := range f.List {
		name := field.Name
		if name == "" {
			return false
		}
		if name[0] == ':' {
			if regular {
				return false
			}
			seen := new(bool)
			switch name {
			case ":method":
				seen = &method
			case ":scheme":
				seen = &scheme
			case ":path":
				seen = &path
			case ":authority":
			default:
				return false
			}
			if *seen || name != ":authority" && field.Value == "" {
				return false
			}
			*seen = true
			continue
		}
		regular = true
		if !validField(name, field.Value) {
			return false
		}
		if name == "content-length" {
			length, err := strconv.ParseUint(field.Value, 10, 63)
			if err != nil || f.length >= 0 && f.length != int64(length) {
				return false
			}
			f.length = int64(length)
		}
	}
	return method && scheme && path
}

func validField(name, value string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || c == ':' || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	switch name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return false
	case "te":
		return value == "trailers"
	}
	for i := range len(value) {
		if c := value[i]; c == 0 || c == '\r' || c == '\n' {
			return false
		}
	}
	return true
}
