package admission_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that connections beyond the limits are closed at once, that others are served meanwhile, and that one that leaves
// makes room, however often it is closed.
func TestHostBound_Listen(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := admission.NewHostBound(8, 7)
	l := b.Listen(inner)
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
	if open, refused := b.Counts(); open != 7 || refused != 1 {
		t.Errorf("%d open, %d refused", open, refused)
	}
	leave, entered := b.Enter("another")
	if _, second := b.Enter("a third"); !entered || second {
		t.Error("another address has one place, and no more")
	}
	leave()
	guests[0].Close()
	guests[0].Close()
	if open, _ := b.Counts(); open != 6 {
		t.Errorf("%d open after one has left, want 6", open)
	}
	dial()
	(<-served).Close()
}

func isReset(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && !operation.Timeout()
}
