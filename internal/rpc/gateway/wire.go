package gateway

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
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
	// calmPause is how long a websocket that brought too much takes to end: its client may come back at once.
	calmPause = time.Second
)

var errIdleBytes = errors.New("quorate: a websocket brings too much that brings nothing forward")

// wire is the connection of a websocket, which ends for what brings nothing forward.
type wire struct {
	net.Conn
	mu    sync.Mutex
	score int // bytes that brought nothing forward, without what was forgiven and paid
	at    time.Time
}

// Read implements io.Reader.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if idle := w.take(n); idle != nil {
		return 0, idle
	}
	return n, err
}

// take takes note of bytes that may bring nothing forward. If these are too many the websocket is to end, after a while.
func (w *wire) take(n int) error {
	if w.brought(n, time.Now()) {
		return nil
	}
	time.Sleep(calmPause)
	return errIdleBytes
}

// brought is take without the while; false: there are too many.
func (w *wire) brought(n int, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if forgiven := int(now.Sub(w.at).Seconds() * forgivenBytes); forgiven > 0 {
		w.at = now
		w.score = max(min(w.score, 0), w.score-forgiven)
	}
	w.score += n
	return w.score <= maxIdleBytes
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

// newSocket makes a websocket of what upgrade makes of a request.
func newSocket(w http.ResponseWriter, upgrade func(http.ResponseWriter) (*websocket.Conn, error)) (*socket, error) {
	s := &socket{wire: &wire{at: time.Now()}}
	var err error
	if s.Conn, err = upgrade(&wired{w, s.wire}); err != nil {
		return nil, err
	}
	pong := s.PingHandler()
	s.SetPingHandler(func(data string) error {
		if err := s.wire.take(pingBytes); err != nil {
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
