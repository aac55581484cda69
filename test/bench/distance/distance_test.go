package distance

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// A connection is as far as its two ends are, its owner is known, and one of an owner that is refused ends.
func TestDial(t *testing.T) {
	const delay = 30 * time.Millisecond
	server := listen(t)
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			buffer := make([]byte, 1)
			if _, err := conn.Read(buffer); err == nil {
				_, _ = conn.Write(buffer)
			}
		}
	}()
	front := listen(t)
	owners := make(chan []string, 2)
	var refuse atomic.Bool // the next one
	go Pass(front, server.Addr().String(), func(from net.Addr) (there, back *Link, err error) {
		if refuse.Swap(true) {
			return nil, nil, errors.New("refused")
		}
		line, err := Owner(from)
		owners <- line
		return &Link{}, &Link{}, err
	})
	ask := func() (time.Duration, error) {
		conn, err := Dial(t.Context(), front.Addr().String(), delay)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		begun := time.Now()
		if _, err := conn.Write([]byte("x")); err != nil {
			return 0, err
		}
		_, err = conn.Read(make([]byte, 1))
		return time.Since(begun), err
	}
	if took, err := ask(); err != nil || took < 2*delay {
		t.Errorf("the answer came after %s (%v), which is less than a round trip of %s", took, err, 2*delay)
	}
	if line := <-owners; !slices.Equal(line, os.Args) {
		t.Errorf("the owner is %q, not this test %q", line, os.Args)
	}
	if _, err := ask(); err == nil {
		t.Error("a refused connection got an answer")
	}
}

func TestInodeOf(t *testing.T) {
	const table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F:1F90 0100007F:A1B2 01 00000000:00000000 00:00000000 00000000     0        0 777 1 0\n" +
		"   1: 0100007F:A1B2 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 888 1 0\n"
	if got := inodeOf(table, 0xA1B2); got != "888" {
		t.Errorf("got %q", got)
	}
	if got := inodeOf(table, 1); got != "" {
		t.Errorf("of a port that is not there: got %q", got)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}
