package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

const (
	// aheadBytes of a body are read before the handler asks for them, in aheadParts: more than the first message of a watch
	// has.
	aheadBytes = 4 << 10
	aheadParts = 4
)

// ahead reads the beginning of a body before it is asked for: HTTP/1 shows only then whether a client that waits for its turn
// is still there.
type ahead struct {
	io.ReadCloser
	parts chan []byte
	part  []byte
	err   error // to be read once parts is closed
}

// newAhead begins to read. It ends with ctx; a client that goes ends the call.
func newAhead(ctx context.Context, body io.ReadCloser, end context.CancelCauseFunc) *ahead {
	a := &ahead{ReadCloser: body, parts: make(chan []byte, aheadParts-1)} // and one in hand
	go a.fill(ctx, end)
	return a
}

func (a *ahead) fill(ctx context.Context, end context.CancelCauseFunc) {
	defer close(a.parts)
	var part [aheadBytes / aheadParts]byte
	for a.err == nil {
		var n int
		n, a.err = a.ReadCloser.Read(part[:])
		select {
		case a.parts <- bytes.Clone(part[:n]): // it may be one byte
		case <-ctx.Done():
			a.err = context.Cause(ctx)
			return
		}
	}
	if !errors.Is(a.err, io.EOF) && !errors.Is(a.err, http.ErrBodyReadAfterClose) {
		end(nil)
	}
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	for len(a.part) == 0 {
		part, more := <-a.parts
		if !more {
			return 0, a.err
		}
		a.part = part
	}
	n := copy(p, a.part)
	a.part = a.part[n:]
	return n, nil
}
