package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/admission"
)

const (
	// JSON takes more bytes than the message it stands for: a third more for base64, and what names and blanks take.
	maxBodyExtraBytes = 64 << 10
	// maxObjects bounds the objects and lists of one request: two bytes of JSON make a hundred bytes of messages.
	maxObjects = 65_536
	// maxStreamMessageBytes bounds each message of a request that has several. They are few bytes, and as many such
	// requests may be open as there are connections.
	maxStreamMessageBytes = 64 << 10
	// objectBytes is what an object or a list of a request takes when it was read.
	objectBytes = 128
	// callBytes is what a call takes beside its connection and its request.
	callBytes = 8 << 10
	// messagePatience is how long the only message of a websocket may take.
	messagePatience = 30 * time.Second
)

var (
	errTooManyObjects = status.Errorf(codes.InvalidArgument,
		"quorate: a request has more than %d JSON objects: ask in several requests, or by gRPC", maxObjects)
	errTooManyBodies = status.Errorf(codes.ResourceExhausted,
		"quorate: the JSON requests under way take too many bytes at this member, or those of this address: ask again later")
)

func tooLarge(size, limit int64) error {
	return status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", size, limit)
}

// intake reads requests, and counts the bytes of those that are under way as what their client hosts hold.
type intake struct {
	limit int64 // of bytes of one request
	first *admission.FirstMessages
	held  *admission.Ledger

	bytes   atomic.Int64
	refused atomic.Uint64
}

// readBody reads a request whole, so that it is a call only once it has arrived, within the time that a gRPC request has. Leave
// is to be called when it was answered.
func (in *intake) readBody(w http.ResponseWriter, r *http.Request, host string) (leave func(), err error) {
	size := in.limit
	if r.ContentLength >= 0 {
		size = r.ContentLength
	}
	if size > in.limit {
		return nil, tooLarge(size, in.limit)
	}
	b, err := in.open(host, size)
	if err != nil {
		return nil, err
	}
	body, err := in.receive(w, r)
	return b.take(r, body, err)
}

// readMessage makes one message of a websocket the body of a request.
func (in *intake) readMessage(conn *websocket.Conn, r *http.Request, host string) (leave func(), err error) {
	b, err := in.open(host, in.limit)
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(in.limit)
	err = conn.SetReadDeadline(time.Now().Add(messagePatience))
	var body []byte
	if err == nil {
		_, body, err = conn.ReadMessage()
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	return b.take(r, body, err)
}

// request is what one request takes.
type request struct {
	in  *intake
	tab *admission.Tab
	has int64
}

// open takes room for a request of so many bytes, and for its call.
func (in *intake) open(host string, size int64) (*request, error) {
	b := &request{in: in, tab: in.held.Open(host)}
	if !b.keep(size + callBytes) {
		b.leave()
		return nil, errTooManyBodies
	}
	return b, nil
}

// keep takes room for so many bytes in the place of what the request has; false if there is none.
func (b *request) keep(bytes int64) bool {
	more := bytes - b.has
	if more > 0 && !b.tab.Take(more) {
		b.in.refused.Add(1)
		return false
	}
	if more < 0 {
		b.tab.Give(-more)
		b.tab.Settle()
	}
	b.has = bytes
	b.in.bytes.Add(more)
	return true
}

func (b *request) leave() {
	b.in.bytes.Add(-b.has)
	b.tab.Close()
}

// take makes what was read the body of a request, and counts that, and what will be read of it, instead of what was reserved.
func (b *request) take(r *http.Request, body []byte, err error) (leave func(), _ error) {
	objects := 0
	if err == nil {
		objects, err = countObjects(body)
	}
	if err == nil && !b.keep(2*int64(len(body))+int64(objects)*objectBytes+callBytes) {
		err = errTooManyBodies
	}
	if err != nil {
		b.leave()
		return nil, err
	}
	r.Body = &whole{Reader: bytes.NewReader(body), body: body, weight: len(body) + objects*objectBytes}
	return b.leave, nil
}

// whole is a body that has come in full. Its weight is how much work it is to read: an object is as much as the bytes that it
// takes.
type whole struct {
	*bytes.Reader
	body   []byte
	weight int
}

// Close implements io.Closer.
func (*whole) Close() error { return nil }

func countObjects(body []byte) (int, error) {
	n := bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte{'['})
	if n > maxObjects {
		return n, errTooManyObjects
	}
	return n, nil
}

// receive reads what a client sends, unless it takes too long over it.
func (in *intake) receive(w http.ResponseWriter, r *http.Request) (body []byte, err error) {
	timed, err := in.first.Tap(r.Context(), nil)
	if err != nil {
		return nil, err
	}
	conn := http.NewResponseController(w)
	stop := context.AfterFunc(timed, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) }) // where it fails, the read does
	err = in.first.Receive(timed, func() (err error) {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, in.limit))
		return err
	})
	stop()
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge(in.limit+1, in.limit)
	case err != nil && timed.Err() != nil:
		return nil, status.FromContextError(timed.Err()).Err()
	case err != nil:
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return body, nil
}

// messages is a body with several messages, each of which may have so many bytes. Who reads them says when the next one begins.
// What is wrong with them ends the call, with the reason.
type messages struct {
	io.ReadCloser
	left int64
	end  context.CancelCauseFunc
}

func newMessages(body io.ReadCloser, end context.CancelCauseFunc) *messages {
	return &messages{ReadCloser: body, left: maxStreamMessageBytes, end: end}
}

// Read implements io.Reader.
func (m *messages) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, fmt.Errorf("quorate: a JSON message is larger than %d bytes", maxStreamMessageBytes)
	}
	n, err := m.ReadCloser.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	if errors.Is(err, http.ErrBodyReadAfterClose) {
		err = io.EOF // over HTTP/1 the requests end where the answers begin
	}
	return n, err
}

// next begins the next message.
func (m *messages) next() { m.left = maxStreamMessageBytes }

// fail ends the call.
func (m *messages) fail(err error) { m.end(status.Error(codes.InvalidArgument, err.Error())) }
