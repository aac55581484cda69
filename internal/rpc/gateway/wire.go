package gateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	websocketBufferBytes = 4 << 10
	// maxIdleBytes is how many bytes a websocket may bring beside what its messages have in them: heads of frames, pings,
	// fragments and messages without contents, each of which is work. A client brings six or so with each message.
	maxIdleBytes = 16 << 10
	// forgivenBytes are forgiven each second, and answerBytes for each message that the client is sent; it may be sent so many
	// ahead of what it brings that mostPaidBytes are paid for.
	forgivenBytes = 1 << 10
	answerBytes   = 64
	mostPaidBytes = 64 << 10
	// pingBytes is what a ping counts beside its bytes: the answer takes a call of the system.
	pingBytes = 512
	// floodRequests is what Hosts counts for a websocket that ends for what it brought: as much as for an HTTP/2 connection
	// that ends so, since its client may come back at once. Websockets have a count of their own.
	floodRequests = 256
)

var (
	errIdleBytes = status.Error(codes.ResourceExhausted, "quorate: a websocket brings too much that brings nothing forward")
	errFlooding  = status.Error(codes.ResourceExhausted,
		"quorate: connections of this address have brought too much that brings nothing forward: open websockets later")
)

// Hosts remembers which hosts have had connections that ended for what they brought. An *admission.Abandoned is one.
type Hosts interface {
	Admits(from net.Addr) bool
	Add(from net.Addr, requests int)
}

// wire is the connection of a websocket, which ends for what brings nothing forward.
type wire struct {
	net.Conn
	flooded func() // called once, when the websocket is to end for what it brought

	mu    sync.Mutex
	score int // bytes that brought nothing forward, or are not read yet, without what was forgiven and paid
	at    time.Time
	ended bool
}

// Read implements io.Reader. The reader of the websocket asks for more once it has read what came before: whatever was contents
// of that is paid by then, however many bytes it was.
func (w *wire) Read(p []byte) (int, error) {
	if err := w.judge(0); err != nil {
		return 0, err
	}
	n, err := w.Conn.Read(p)
	w.brought(n, time.Now())
	return n, err
}

// ping takes note of one. The buffer may hold contents behind it, which are not paid.
func (w *wire) ping() error {
	w.brought(pingBytes, time.Now())
	return w.judge(websocketBufferBytes)
}

// brought takes note of bytes that may bring nothing forward.
func (w *wire) brought(n int, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if forgiven := int(now.Sub(w.at).Seconds() * forgivenBytes); forgiven > 0 {
		w.at = now
		w.score = max(min(w.score, 0), w.score-forgiven)
	}
	w.score += n
}

// judge ends the websocket if too many bytes have brought nothing forward, where so many are not read yet.
func (w *wire) judge(unread int) error {
	w.mu.Lock()
	over := w.score-unread > maxIdleBytes
	first := over && !w.ended
	w.ended = w.ended || over
	w.mu.Unlock()
	if first {
		w.flooded()
	}
	if over {
		return errIdleBytes
	}
	return nil
}

// pay takes bytes off that did, or were brought for what was.
func (w *wire) pay(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.score = max(w.score-n, -mostPaidBytes)
}

// socket is a websocket.
type socket struct {
	*websocket.Conn
	wire *wire
}

// wired has the connection of a websocket be a wire.
type wired struct {
	http.ResponseWriter
	wire *wire
}

// Hijack implements http.Hijacker.
func (w *wired) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.wire.Conn = conn
	return w.wire, buffer, err
}

// newSocket makes a websocket of what upgrade makes of a request. Flooded is called if it is to end for what it brought.
func newSocket(
	w http.ResponseWriter, upgrade func(http.ResponseWriter) (*websocket.Conn, error), flooded func(),
) (*socket, error) {
	s := &socket{wire: &wire{at: time.Now(), flooded: flooded}}
	var err error
	if s.Conn, err = upgrade(&wired{w, s.wire}); err != nil {
		return nil, err
	}
	pong := s.PingHandler()
	s.SetPingHandler(func(data string) error {
		if err := s.wire.ping(); err != nil {
			return err
		}
		return pong(data)
	})
	return s, nil
}

// next waits for a message, and returns what is in it.
func (s *socket) next() (io.Reader, error) {
	_, message, err := s.NextReader()
	return &contents{message, s.wire}, err
}

// say sends a message.
func (s *socket) say(text []byte) error {
	s.wire.pay(answerBytes)
	return s.WriteMessage(websocket.TextMessage, text)
}

// contents is what is in a message.
type contents struct {
	io.Reader
	wire *wire
}

// Read implements io.Reader.
func (c *contents) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.wire.pay(n)
	return n, err
}
