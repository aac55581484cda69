package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
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
	// maxBodies bounds the bytes of all requests that have come and are not answered yet, maxHostBodies those of one address.
	maxBodies     = 128 << 20
	maxHostBodies = 32 << 20
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

// intake reads requests, and counts the bytes of those that are under way.
type intake struct {
	limit int64 // of bytes of one request
	first *admission.FirstMessages
	bodyBudget
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
	if !in.enter(host, size) {
		return nil, errTooManyBodies
	}
	body, err := in.receive(w, r)
	return in.take(r, body, err, host, size)
}

// readMessage makes one message of a websocket the body of a request.
func (in *intake) readMessage(conn *websocket.Conn, r *http.Request, host string) (leave func(), err error) {
	if !in.enter(host, in.limit) {
		return nil, errTooManyBodies
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
	return in.take(r, body, err, host, in.limit)
}

// take makes what was read the body of a request, and counts that instead of what was reserved.
func (in *intake) take(r *http.Request, body []byte, err error, host string, reserved int64) (leave func(), _ error) {
	if err == nil {
		err = checkObjects(body)
	}
	if err != nil {
		in.leave(host, reserved)
		return nil, err
	}
	size := int64(len(body))
	in.leave(host, reserved-size)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return func() { in.leave(host, size) }, nil
}

func checkObjects(body []byte) error {
	if bytes.Count(body, []byte{'{'})+bytes.Count(body, []byte{'['}) > maxObjects {
		return errTooManyObjects
	}
	return nil
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

// bodyBudget counts the bytes of requests.
type bodyBudget struct {
	largest int64 // of one request, for which there is room at least

	mu      sync.Mutex
	bytes   int64
	hosts   map[string]int64
	refused uint64
}

func (b *bodyBudget) enter(host string, size int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes+size > max(maxBodies, b.largest) || b.hosts[host]+size > max(maxHostBodies, b.largest) {
		b.refused++
		return false
	}
	if b.hosts == nil {
		b.hosts = make(map[string]int64)
	}
	b.bytes += size
	b.hosts[host] += size
	return true
}

func (b *bodyBudget) leave(host string, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= size
	if b.hosts[host] -= size; b.hosts[host] <= 0 {
		delete(b.hosts, host)
	}
}

func (b *bodyBudget) counts() (size int64, refused uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes, b.refused
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
