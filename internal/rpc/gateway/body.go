package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/admission"
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
	// elementBytes is what any other element of a list, or a field, takes and is as work: 30,000 numbers in 60 kB are 4 ms.
	elementBytes = 32
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
func (in *intake) readMessage(conn *socket, r *http.Request, host string) (leave func(), err error) {
	b, err := in.open(host, in.limit)
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(in.limit)
	err = conn.SetReadDeadline(time.Now().Add(messagePatience))
	var message io.Reader
	if err == nil {
		message, err = conn.next()
	}
	var body []byte
	if err == nil {
		body, err = io.ReadAll(message)
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
	parts := partsBytes(body)
	if err == nil && countObjects(body) > maxObjects {
		err = errTooManyObjects
	}
	if err == nil && !b.keep(2*int64(len(body))+int64(parts)+callBytes) {
		err = errTooManyBodies
	}
	if err != nil {
		b.leave()
		return nil, err
	}
	r.Body = &whole{Reader: bytes.NewReader(body), body: body, weight: len(body) + parts}
	return b.leave, nil
}

// whole is a body that has come in full. Its weight is how much work it is to read: an object or an element is as much as the
// bytes that it takes.
type whole struct {
	*bytes.Reader
	body   []byte
	weight int
}

// Close implements io.Closer.
func (*whole) Close() error { return nil }

func countObjects(body []byte) int {
	return bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte{'['})
}

// partsBytes is what the objects, lists, elements and fields of JSON take when it was read.
func partsBytes(body []byte) int {
	return countObjects(body)*objectBytes + bytes.Count(body, []byte{','})*elementBytes
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
