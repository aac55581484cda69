package h2

import (
	"bytes"
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
	frames int

	// The last block, if it reads the same as long as the table does not change, which it does not do itself.
	last       []byte
	lastFields *Fields
}

func newHeaderReader(most int) *headerReader {
	h := &headerReader{most: most}
	h.decoder = hpack.NewDecoder(tableBytes, h.emit)
	h.decoder.SetMaxStringLength(most)
	return h
}

// shown says that fields are written to standard error, as Go's HTTP/2 does with GODEBUG=http2debug=2.
var shown = slices.Contains(strings.Split(os.Getenv("GODEBUG"), ","), "http2debug=2")

func (h *headerReader) emit(f hpack.HeaderField) {
	if shown {
		log.Printf("http2: decoded hpack field %+v", f)
	}
	if h.left -= int(f.Size()); h.left < 0 {
		h.tooLarge = true
		return
	}
	h.list = append(h.list, f)
}

// begin takes a HEADERS frame, without padding and priority; done if no CONTINUATION follows.
func (h *headerReader) begin(f *frame, block []byte) (done bool, err error) {
	if f.has(flagEndHeaders) {
		h.block, h.ends = block, f.has(flagEndStream)
		return true, nil
	}
	h.stream, h.ends, h.frames = f.stream, f.has(flagEndStream), 0
	h.block = append([]byte(nil), block...)
	return false, h.bounded()
}

// proceed takes a CONTINUATION frame.
func (h *headerReader) proceed(f *frame) (done bool, err error) {
	h.block = append(h.block, f.payload...)
	h.frames++
	if f.has(flagEndHeaders) {
		h.stream = 0
		return true, h.bounded()
	}
	return false, h.bounded()
}

// bounded refuses a block that is longer packed than it may be unpacked.
func (h *headerReader) bounded() error {
	if len(h.block) > h.most || h.frames > maxContinuations {
		return broken(EnhanceYourCalm, "the fields of a request are too long")
	}
	return nil
}

// fields reads the block that is complete; nil if there are too many.
func (h *headerReader) fields() (*Fields, error) {
	if h.lastFields != nil && bytes.Equal(h.block, h.last) {
		return h.lastFields, nil
	}
	h.list, h.left, h.tooLarge = nil, h.most, false
	if _, err := h.decoder.Write(h.block); err != nil {
		return nil, broken(CompressionError, "the fields of a request cannot be read")
	}
	if err := h.decoder.Close(); err != nil {
		return nil, broken(CompressionError, "the fields of a request end early")
	}
	h.lastFields = nil
	if h.tooLarge {
		return nil, nil
	}
	fields := &Fields{List: h.list, length: -1}
	if !shown && len(h.list) <= maxRemembered && changesNothing(h.block) {
		h.last, h.lastFields = append(h.last[:0], h.block...), fields
	}
	h.block = nil
	return fields, nil
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
