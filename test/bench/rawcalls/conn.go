package rawcalls

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frameBytes is the largest payload of a frame that every server takes, and patience how long one may not take it.
const (
	frameBytes = 16 << 10
	patience   = 5 * time.Second
)

// Conn is a connection.
type Conn struct {
	net    net.Conn
	framer *http2.Framer
	block  bytes.Buffer
	fields *hpack.Encoder
	next   uint32
	ended  chan struct{} // closed once nothing can be read any more

	writing sync.Mutex // one frame at a time

	mu     sync.Mutex
	more   sync.Cond
	window int64 // of the connection, that the server leaves
	gone   bool
	took   int64 // bytes of answers
}

// Call is one call of a Conn.
type Call struct {
	Path      string
	Token     string // of a login
	Metadata  string // of its own
	Message   []byte
	Messages  int           // of that kind; zero: one
	Announced int           // bytes of the message that its prefix names, if more than it has: the call is half-sent
	Pause     time.Duration // before its last message
	Repeats   int           // how often its metadata is named again, a byte each time; they are put into the table then
	Ends      bool          // the client sends no more
	Resets    bool          // the client gives it up at once
}

// dial opens a connection from an address of this machine, by TLS if protocol, the only one that is spoken, is named.
func dial(from, to, protocol string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	if protocol == "" {
		return d.Dial("tcp", to)
	}
	return tls.DialWithDialer(&d, "tcp", to, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
}

// Dial opens a connection from an address of this machine, whose streams have so large a window for answers.
func Dial(from, to string, secure bool, window uint32) (*Conn, error) {
	protocol := ""
	if secure {
		protocol = "h2"
	}
	conn, err := dial(from, to, protocol)
	if err != nil {
		return nil, err
	}
	c := &Conn{net: conn, framer: http2.NewFramer(conn, conn), next: 1, window: 65535,
		ended: make(chan struct{})}
	c.more.L, c.fields = &c.mu, hpack.NewEncoder(&c.block)
	_, err = io.WriteString(conn, http2.ClientPreface)
	err = errors.Join(err, c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}),
		c.framer.WriteSettingsAck())
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go c.read()
	return c, nil
}

// Ended is closed once the server has closed the connection, or Close has.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// Took is how many bytes of answers have come.
func (c *Conn) Took() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.took
}

// Allow lets the server send so many bytes more on the connection. No stream gets more than the window of Dial.
func (c *Conn) Allow(n uint32) error {
	return c.write(func() error { return c.framer.WriteWindowUpdate(0, n) })
}

// maxSettings is how many settings a frame has room for.
const maxSettings = frameBytes / 6

// ChangeWindows changes the window of all streams, as often as a frame of settings has room for.
func (c *Conn) ChangeWindows() error {
	all := make([]http2.Setting, maxSettings)
	for i := range all {
		all[i] = http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i)}
	}
	return c.write(func() error { return c.framer.WriteSettings(all...) })
}

// write writes one frame, for which the server has some patience.
func (c *Conn) write(frame func() error) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.net.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	return frame()
}

// read takes windows, and counts answers, until the connection ends.
func (c *Conn) read() {
	defer close(c.ended)
	for {
		f, err := c.framer.ReadFrame()
		c.mu.Lock()
		if update, ok := f.(*http2.WindowUpdateFrame); ok && err == nil && update.StreamID == 0 {
			c.window += int64(update.Increment)
		}
		if data, ok := f.(*http2.DataFrame); ok && err == nil {
			c.took += int64(len(data.Data()))
		}
		c.gone = err != nil
		c.mu.Unlock()
		c.more.Broadcast()
		if err != nil {
			return
		}
	}
}

// Send begins a call, and sends what it has of its message.
func (c *Conn) Send(call Call) error {
	id := c.next
	c.next += 2
	c.block.Reset()
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", call.Path}, {":authority", "bench"},
		{"content-type", "application/grpc"}, {"te", "trailers"}, {"token", call.Token}, {"filler", call.Metadata}} {
		filler := field[0] == "filler"
		if field[0] == "token" && call.Token == "" {
			continue
		}
		// A sensitive field does not enter the table, of which the filler needs all.
		f := hpack.HeaderField{Name: field[0], Value: field[1], Sensitive: filler == (call.Repeats == 0)}
		if err := c.fields.WriteField(f); err != nil {
			return err
		}
	}
	block := c.block.Bytes()
	for range call.Repeats {
		block = append(block, newest)
	}
	if err := c.write(func() error { return c.head(id, block) }); err != nil {
		return err
	}
	for left := max(1, call.Messages); left > 0; left-- {
		if left == 1 && call.Pause > 0 {
			time.Sleep(call.Pause)
		}
		if err := c.message(id, &call, left == 1); err != nil {
			return err
		}
	}
	if call.Resets {
		return c.write(func() error { return c.framer.WriteRSTStream(id, http2.ErrCodeCancel) })
	}
	return nil
}

// message sends a message of a call. All but the last one are whole.
func (c *Conn) message(id uint32, call *Call, last bool) error {
	length := len(call.Message)
	if last {
		length = max(call.Announced, length)
	}
	data := binary.BigEndian.AppendUint32([]byte{0}, uint32(length))
	data = append(data, call.Message...)
	for len(data) > 0 {
		n, err := c.grant(min(len(data), frameBytes))
		if err == nil {
			err = c.write(func() error { return c.framer.WriteData(id, last && call.Ends && n == len(data), data[:n]) })
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// newest names the newest field of the table (RFC 7541, section 6.1): 61 are static.
const newest = 0x80 | 62

func (c *Conn) head(id uint32, block []byte) error {
	piece := block[:min(len(block), frameBytes)]
	rest := block[len(piece):]
	err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: piece, EndHeaders: len(rest) == 0})
	for len(rest) > 0 && err == nil {
		piece = rest[:min(len(rest), frameBytes)]
		rest = rest[len(piece):]
		err = c.framer.WriteContinuation(id, len(rest) == 0, piece)
	}
	return err
}

// grant waits for a window of at most so many bytes.
func (c *Conn) grant(most int) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.window <= 0 && !c.gone {
		c.more.Wait()
	}
	if c.gone {
		return 0, net.ErrClosed
	}
	n := min(most, int(c.window))
	c.window -= int64(n)
	return n, nil
}

// Close ends the connection and its calls.
func (c *Conn) Close() error {
	err := c.net.Close()
	<-c.ended
	return err
}
