package h2

import "strconv"

// fieldWriter writes the fields of answers. It puts the two of a success into the client's table, the first time.
type fieldWriter struct {
	plain   bool // the client's table is small, and stays empty
	emptied bool // which the client is still to be told (RFC 7541, section 4.2)
	// How many entries there are, and which of them these fields are: zero if none.
	entries, contentType, status int
}

const (
	fieldStatus200   = 0x88 // of the static table
	fieldContentType = "\x5f\x10application/grpc"
	fieldGRPCStatus  = "\x40\x0bgrpc-status\x010"
	plainContentType = "\x0f\x10\x10application/grpc"
	plainGRPCStatus  = "\x00\x0bgrpc-status\x010"
	staticEntries    = 61
	tableEmptied     = 0x20
)

// limit takes the size that the client gives its table.
func (w *fieldWriter) limit(size uint32) {
	if size < tableBytes && !w.plain {
		w.plain, w.emptied = true, true
	}
}

// appendAnswer writes :status 200 and content-type application/grpc.
func (w *fieldWriter) appendAnswer(dst []byte, stream uint32) []byte {
	var room [32]byte
	block := append(room[:0], fieldStatus200)
	return w.append(dst, stream, w.known(block, &w.contentType, fieldContentType, plainContentType), 0)
}

// appendOK writes grpc-status 0, and ends the stream.
func (w *fieldWriter) appendOK(dst []byte, stream uint32) []byte {
	var room [32]byte
	return w.append(dst, stream, w.known(room[:0], &w.status, fieldGRPCStatus, plainGRPCStatus), flagEndStream)
}

// known writes a field by its place in the client's table, or into it.
func (w *fieldWriter) known(block []byte, at *int, entering, plain string) []byte {
	switch {
	case w.plain:
		return append(block, plain...)
	case *at == 0:
		w.entries++
		*at = w.entries
		return append(block, entering...)
	}
	return append(block, 0x80|byte(staticEntries+1+w.entries-*at))
}

// append writes a block of fields; flags may be that of the end of the stream.
func (w *fieldWriter) append(dst []byte, stream uint32, block []byte, flags byte) []byte {
	if w.emptied {
		w.emptied = false
		block = append([]byte{tableEmptied}, block...)
	}
	kind := byte(typeHeaders)
	for len(block) > maxFrameBytes {
		dst = append(appendHeader(dst, maxFrameBytes, kind, flags, stream), block[:maxFrameBytes]...)
		block, kind, flags = block[maxFrameBytes:], typeContinuation, 0
	}
	return append(appendHeader(dst, len(block), kind, flags|flagEndHeaders, stream), block...)
}

// AppendField writes a field into a block that changes no table (RFC 7541, section 6.2.2).
func AppendField(dst []byte, name, value string) []byte {
	dst = append(dst, 0)
	dst = appendString(dst, name)
	return appendString(dst, value)
}

// AppendStatus writes :status.
func AppendStatus(dst []byte, code int) []byte {
	if code == 200 {
		return append(dst, fieldStatus200)
	}
	return appendString(append(dst, 0x08), strconv.Itoa(code)) // its name is the eighth of the static table
}

func appendString(dst []byte, s string) []byte {
	if n := len(s); n < 127 {
		dst = append(dst, byte(n))
	} else {
		dst = append(dst, 127)
		for n -= 127; n >= 128; n >>= 7 {
			dst = append(dst, byte(n)|128)
		}
		dst = append(dst, byte(n))
	}
	return append(dst, s...)
}
