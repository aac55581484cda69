package rawcalls

import (
	"bytes"
	"fmt"
	"net"
	"time"
)

// Plain is a connection that speaks HTTP/1, and reads no answers.
type Plain struct{ net net.Conn }

// Request is one request of a Plain.
type Request struct {
	Path      string
	Token     string
	Body      []byte
	Announced int  // bytes that its head names, if more than the body has
	Upgrade   bool // to a websocket, whose first message the body is
}

// DialPlain opens a connection from an address of this machine.
func DialPlain(from, to string, secure bool) (*Plain, error) {
	protocol := ""
	if secure {
		protocol = "http/1.1"
	}
	conn, err := dial(from, to, protocol)
	if err != nil {
		return nil, err
	}
	return &Plain{conn}, nil
}

// Send sends a request.
func (p *Plain) Send(r Request) error {
	var out bytes.Buffer
	if r.Upgrade {
		fmt.Fprintf(&out, "GET %s HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nAuthorization: %s\r\n\r\n",
			r.Path, r.Token)
		out.Write(frame(r.Body, max(r.Announced, len(r.Body))))
	} else {
		fmt.Fprintf(&out, "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: %s\r\n"+
			"Content-Length: %d\r\n\r\n", r.Path, r.Token, max(r.Announced, len(r.Body)))
		out.Write(r.Body)
	}
	if err := p.net.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := p.net.Write(out.Bytes())
	return err
}

// frame is a masked text frame of a websocket (RFC 6455, section 5.2) whose head names so many bytes. The mask is zero.
func frame(body []byte, length int) []byte {
	const text, masked, long = 0x81, 0x80, 127
	head := []byte{text, masked | long}
	for shift := 56; shift >= 0; shift -= 8 {
		head = append(head, byte(length>>shift))
	}
	return append(append(head, 0, 0, 0, 0), body...)
}

// Close ends the connection.
func (p *Plain) Close() error { return p.net.Close() }
