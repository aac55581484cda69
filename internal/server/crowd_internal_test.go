package server

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

func TestClientConns(t *testing.T) {
	for _, tc := range []struct {
		files uint64
		want  int
	}{{0, maxClientConns}, {256, 128}, {16_384, 8_192}, {20_000, 11_808}, {1 << 20, maxClientConns}, {1<<64 - 1, maxClientConns}} {
		if got := clientConns(tc.files); got != tc.want {
			t.Errorf("%d files: got %d, want %d", tc.files, got, tc.want)
		}
	}
}

// Ensure that connections beyond the limits are closed at once, that others are served meanwhile, and that whoever leaves
// makes room, however often it is closed.
func TestCrowd_listen(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := newCrowd(8) // one address may have seven
	l := c.listen(inner)
	defer l.Close()
	served := make(chan net.Conn, 16)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served <- conn
		}
	}()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var guests []net.Conn
	for range 7 {
		dial()
		guests = append(guests, <-served)
	}
	turned := dial()
	if err := turned.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := turned.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !isReset(err) {
		t.Fatalf("one connection too many: %v, want its end", err)
	}
	if open, refused := c.counts(); open != 7 || refused != 1 {
		t.Errorf("%d open, %d refused", open, refused)
	}
	if !c.enter("another") || c.enter("a third") {
		t.Error("another address has one place, and no more")
	}
	c.leave("another")
	guests[0].Close()
	guests[0].Close()
	if open, _ := c.counts(); open != 6 {
		t.Errorf("%d open after one has left, want 6", open)
	}
	dial()
	(<-served).Close()
}

func isReset(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && !operation.Timeout()
}
