package admission

import (
	"io"
	"net"
	"testing"
)

// Ensure that a goroutine that reads a connection lets others run after 8 KiB, in however many reads they come, and that what
// is below the connection is found.
func TestYielding(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		for range 6 {
			_, _ = there.Write(make([]byte, yieldBytes/2))
		}
		_ = there.Close()
	}()
	l := Yielding(&oneConn{conn: here})
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := accepted.(*yieldingConn)
	yields := 0
	c.yield = func() { yields++ }
	if n, err := io.Copy(io.Discard, struct{ io.Reader }{c}); err != nil || n != 3*yieldBytes {
		t.Fatalf("read %d bytes: %v", n, err)
	}
	if yields != 3 || c.NetConn() != here {
		t.Errorf("yielded %d times while three times as much was read as may be at once", yields)
	}
}

// Ensure that a goroutine that answers a connection lets others run after each answer, also where many requests come in one
// read.
func TestYielding_answers(t *testing.T) {
	const requests = 100
	here, there := net.Pipe()
	defer here.Close()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	accepted, err := Yielding(&oneConn{conn: here}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := accepted.(*yieldingConn)
	yields := 0
	c.yield = func() { yields++ }
	for range requests {
		if n, err := c.Write([]byte("an answer")); err != nil || n != 9 {
			t.Fatalf("wrote %d bytes: %v", n, err)
		}
	}
	if yields != requests {
		t.Errorf("yielded %d times for %d answers", yields, requests)
	}
}

// oneConn accepts one connection.
type oneConn struct {
	net.Listener
	conn net.Conn
}

func (l *oneConn) Accept() (net.Conn, error) { return l.conn, nil }
