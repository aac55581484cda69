package pingack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// wire is a connection that remembers what was written to it.
type wire struct {
	net.Conn
	mu     sync.Mutex // the timer writes, too
	buffer bytes.Buffer
	writes int
	fails  error
}

func (w *wire) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.Read(p)
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails != nil {
		return 0, w.fails
	}
	w.writes++
	return w.buffer.Write(p)
}

func (w *wire) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.String()
}

func (w *wire) Len() int { return len(w.String()) }

func (w *wire) Close() error { return nil }

// frame is one with a payload of so many bytes.
func frame(payload int) string {
	header := binary.BigEndian.AppendUint32(nil, uint32(payload)<<8)
	return string(header) + "\x00\x00\x00\x00\x01" + strings.Repeat("x", payload)
}

// pass lets time go by in the bubble of a test.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func write(t testing.TB, c net.Conn, p string) {
	t.Helper()
	if n, err := c.Write([]byte(p)); n != len(p) || err != nil {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(p), err)
	}
}

// Ensure that the answer to a ping of bandwidth waits for a tenth of a second, whatever small is written meanwhile.
func TestConn_Write_answerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		c := &conn{Conn: w}
		write(t, c, answer)
		write(t, c, frame(10))
		pass(patience - 1)
		if w.String() != frame(10) {
			t.Fatalf("the answer did not wait: %q", w.String())
		}
		pass(1)
		if w.String() != frame(10)+answer {
			t.Fatalf("got %q, want the answer behind the frame", w.String())
		}
		write(t, c, answer) // the next one waits again
		if w.String() != frame(10)+answer {
			t.Fatalf("the second answer did not wait: %q", w.String())
		}
		pass(patience)
		if w.String() != frame(10)+answer+answer {
			t.Fatalf("got %q, want the second answer", w.String())
		}
	})
}

// Ensure that a client that receives much gets the answer at once, between two frames, and that it is not sent again when its
// time comes.
func TestConn_Write_answerOfABusyConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		c := &conn{Conn: w}
		write(t, c, answer)
		large := frame(2 * enoughBytes)
		write(t, c, large[:enoughBytes+100])
		if w.Len() != enoughBytes+100 {
			t.Fatal("the answer is within a frame")
		}
		write(t, c, large[enoughBytes+100:])
		pass(2 * patience)
		if w.String() != large+answer {
			t.Fatalf("got %d bytes, want a frame and an answer, %d", w.Len(), len(large)+len(answer))
		}
	})
}

// Ensure that an answer whose time comes within a frame goes when the frame has ended.
func TestConn_Write_overdueWithinAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		c := &conn{Conn: w}
		write(t, c, answer)
		write(t, c, frame(10)[:12])
		pass(2 * patience)
		if w.Len() != 12 {
			t.Fatal("the answer is within a frame")
		}
		write(t, c, frame(10)[12:])
		if w.String() != frame(10)+answer {
			t.Fatalf("got %q, want the answer behind the frame", w.String())
		}
	})
}

// Ensure that what only looks like an answer, and answers to other pings, are written at once.
func TestConn_Write_others(t *testing.T) {
	w := &wire{}
	c := &conn{Conn: w}
	keepAlive := answer[:frameHeaderBytes] + "\x00\x00\x00\x00\x00\x00\x00\x00"
	write(t, c, keepAlive)
	value := frame(len(answer))[:frameHeaderBytes]
	write(t, c, value)
	write(t, c, answer) // as a value
	if want := keepAlive + value + answer; w.String() != want {
		t.Fatalf("got %q, want %q", w.String(), want)
	}
	write(t, c, answer)
	write(t, c, answer) // no client asks again before it was answered
	if want := keepAlive + value + answer + answer; w.String() != want {
		t.Fatalf("two answers wait: %q", w.String())
	}
	c.Close()
}

// Ensure that nothing is written to a connection that was closed, and that a failure to write is told.
func TestConn_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		c := &conn{Conn: w}
		write(t, c, answer)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		pass(2 * patience)
		if w.Len() != 0 {
			t.Errorf("written after Close: %q", w.String())
		}
		broken := &wire{fails: errors.New("broken")}
		c = &conn{Conn: broken}
		write(t, c, answer)
		if _, err := c.Write([]byte(frame(1))); !errors.Is(err, broken.fails) {
			t.Errorf("got %v, want %v", err, broken.fails)
		}
		c.Close()
	})
}

// FuzzConn writes frames, and answers between them, in pieces of any length, and expects each frame as it was, in order, and as many
// answers.
func FuzzConn(f *testing.F) {
	f.Add([]byte{10, 0, 200, 0, 0, 3}, uint16(7))
	f.Add([]byte{0, 255, 0, 255, 0}, uint16(1))
	f.Fuzz(func(t *testing.T, lengths []byte, piece uint16) {
		if piece == 0 {
			piece = 1 << 15
		}
		var frames, answers int
		w := &wire{}
		c := &conn{Conn: w}
		for _, length := range lengths {
			if length == 0 {
				answers++
				write(t, c, answer)
				continue
			}
			frames++
			for rest := frame(int(length) << 5); rest != ""; {
				n := min(len(rest), int(piece))
				write(t, c, rest[:n])
				rest = rest[n:]
			}
		}
		c.expire()
		for _, length := range lengths {
			if length == 0 {
				continue
			}
			for bytes.HasPrefix(w.buffer.Bytes(), []byte(answer)) {
				answers--
				w.buffer.Next(len(answer))
			}
			want := frame(int(length) << 5)
			if got := string(w.buffer.Next(len(want))); got != want {
				t.Fatalf("of %d frames, one is %q, want %q", frames, got, want)
			}
			frames--
		}
		if rest := w.String(); rest != strings.Repeat(answer, answers) {
			t.Fatalf("behind all frames: %q, want %d answers", rest, answers)
		}
		c.Close()
	})
}
