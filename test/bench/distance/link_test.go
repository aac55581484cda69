package distance

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// A link takes no less time than its rate and its delay say, for all of its connections together, and counts what it carried
// each way.
func TestPass(t *testing.T) {
	const size, rate, delay = 192 << 10, 1 << 20, 20 * time.Millisecond
	server := listen(t)
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				n, _ := io.Copy(io.Discard, io.LimitReader(conn, size))
				_, _ = conn.Write(bytes.Repeat([]byte("a"), int(n>>10)))
				_ = conn.Close()
			}()
		}
	}()
	var there, back Link
	there.SetRate(rate)
	there.SetDelay(delay)
	front := listen(t)
	var refuse atomic.Bool
	go Pass(front, server.Addr().String(), func(net.Addr) (*Link, *Link, error) {
		if refuse.Load() {
			return nil, nil, errors.New("refused")
		}
		return &there, &back, nil
	})
	begun, done := time.Now(), make(chan int, 2)
	for range 2 {
		go func() {
			conn, err := net.Dial("tcp", front.Addr().String())
			if err != nil {
				t.Error(err)
				done <- 0
				return
			}
			defer conn.Close()
			_, _ = conn.Write(make([]byte, size))
			answer, _ := io.ReadAll(conn)
			done <- len(answer)
		}()
	}
	if got := <-done + <-done; got != 2*size>>10 {
		t.Errorf("%d bytes were answered, not %d", got, 2*size>>10)
	}
	if took, least := time.Since(begun), time.Second*2*size/rate+delay; took < least {
		t.Errorf("two connections took %s, less than the %s of their link", took, least)
	}
	if there.Bytes() != 2*size || back.Bytes() != 2*size>>10 {
		t.Errorf("the links carried %d and %d bytes", there.Bytes(), back.Bytes())
	}
	refuse.Store(true)
	conn, err := net.Dial("tcp", front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a refused connection got an answer")
	}
}
