package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// streamBytes is what a call with many messages takes beside its connection and its messages: what is read of it ahead, and
	// two goroutines.
	streamBytes = 16 << 10
	// keptTextBytes is the longest message whose memory serves the next one: a stream may be quiet for long.
	keptTextBytes = 4 << 10
)

var errHalfMessage = status.FromContextError(context.DeadlineExceeded).Err()

// messages is a body with several messages, each of which may have so many bytes, and takes the time that a request has at
// most from its first byte to its last. The bytes that have come of one count as held by the client. The goroutine that reads
// them says when the next one begins. A fault in them ends the call, with the reason.
type messages struct {
	io.ReadCloser
	place *streamPlace
	end   context.CancelCauseFunc
	stop  func() // ends the reading of what the client sends

	left    int64
	has     int64  // bytes of the message, and of what was read with it
	again   []byte // what was read with the message before
	arrived func() // nil: the message has not begun
}

func newMessages(body io.ReadCloser, place *streamPlace, end context.CancelCauseFunc, stop func()) *messages {
	return &messages{ReadCloser: body, place: place, end: end, stop: stop, left: maxStreamMessageBytes}
}

// Read implements io.Reader.
func (m *messages) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, fmt.Errorf("quorate: a JSON message is larger than %d bytes", maxStreamMessageBytes)
	}
	p = p[:min(int64(len(p)), m.left)]
	if len(m.again) > 0 {
		n := copy(p, m.again)
		m.again = m.again[n:]
		m.left -= int64(n)
		return n, nil
	}
	n, err := m.ReadCloser.Read(p)
	m.left -= int64(n)
	if full := m.take(p[:n]); full != nil {
		return 0, full
	}
	if errors.Is(err, http.ErrBodyReadAfterClose) {
		err = io.EOF // over HTTP/1 the requests end where the answers begin
	}
	return n, err
}

// take counts bytes of a message twice, as who looks for its end makes room ahead. Blanks between messages begin none.
func (m *messages) take(text []byte) error {
	if m.arrived == nil && len(bytes.TrimLeft(text, " \t\r\n")) > 0 {
		m.arrived = m.place.in.first.Wait(func() {
			m.end(errHalfMessage)
			m.stop()
		})
	}
	m.has += int64(len(text))
	return m.place.keep(2 * m.has)
}

// next begins the next message, of which something may have been read already.
func (m *messages) next(read []byte) error {
	m.left, m.has = maxStreamMessageBytes, 0
	return m.take(read)
}

// came says that all of a message has arrived, and counts what is made of it too until the next one begins.
func (m *messages) came(text []byte) error {
	m.done()
	return m.place.keep(2*m.has + int64(len(text)+partsBytes(text)))
}

// done ends the wait for the rest of a message.
func (m *messages) done() {
	if m.arrived != nil {
		m.arrived()
		m.arrived = nil
	}
}

// fail ends the call.
func (m *messages) fail(err error) {
	if _, ours := status.FromError(err); !ours {
		err = status.Error(codes.InvalidArgument, err.Error())
	}
	m.end(err)
}

// streamPlace is the room of a call with many messages, who may be read beyond its end.
type streamPlace struct {
	in      *intake
	mu      sync.Mutex
	request *request // nil: the call has ended
}

// openStream takes room for a call with many messages.
func (in *intake) openStream(host string) (*streamPlace, error) {
	b, err := in.open(host, streamBytes)
	return &streamPlace{in: in, request: b}, err
}

// keep takes room for so many bytes of messages in the place of what they had.
func (p *streamPlace) keep(bytes int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.request == nil {
		return io.EOF
	}
	if !p.request.keep(streamBytes + callBytes + bytes) {
		return errTooManyBodies
	}
	return nil
}

func (p *streamPlace) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.request.leave()
	p.request = nil
}
