package gateway

import (
	"errors"
	"net"
	"testing"
	"time"
)

// brings notes bytes and judges them.
func (w *wire) brings(n int, now time.Time) bool {
	w.brought(n, now)
	return w.judge(0) == nil
}

// newWire makes one that counts how often it is to end.
func newWire(begun time.Time) (w *wire, floods *int) {
	floods = new(int)
	return &wire{at: begun, flooded: func() { *floods++ }}, floods
}

// Ensure that what a websocket brings beside the contents of its messages is bounded, that contents, answers and time pay for it,
// and that neither time nor answers pay for more than is to come.
func TestWire_brought(t *testing.T) {
	begun := time.Unix(1000, 0)
	w, floods := newWire(begun)
	if !w.brings(maxIdleBytes, begun) || w.brings(1, begun) || w.brings(1, begun) || *floods != 1 {
		t.Errorf("the bound is another one, or it ended %d times", *floods)
	}
	w, _ = newWire(begun)
	for range 1000 { // messages of 30 bytes, as renewals are, at once
		if !w.brings(36, begun) {
			t.Fatal("messages with contents are too many")
		}
		w.pay(30)
	}
	for range 1000 { // and on, if they are answered
		if !w.brings(36, begun) {
			t.Fatal("messages that are answered are too many")
		}
		w.pay(30)
		w.pay(answerBytes)
	}
	w, _ = newWire(begun)
	now := begun
	for range 1000 { // pings twice a second
		now = now.Add(time.Second)
		if !w.brings(2*(6+pingBytes)-2*6, now) {
			t.Fatal("two pings a second are too many")
		}
	}
	w, _ = newWire(begun)
	if later := begun.Add(24 * time.Hour); !w.brings(maxIdleBytes, later) || w.brings(1, later) {
		t.Error("a day without a byte paid for what came later")
	}
	w, _ = newWire(begun)
	for range mostPaidBytes {
		w.pay(answerBytes)
	}
	if !w.brings(mostPaidBytes+maxIdleBytes, begun) || w.brings(1, begun) {
		t.Error("answers paid for more than they may ahead")
	}
}

// full is a connection that fills what it is read into.
type full struct{ net.Conn }

func (full) Read(p []byte) (int, error) { return len(p), nil }

// Ensure that bytes are judged once they were worked through, however many come at once, and a ping without the contents that may
// wait behind it.
func TestWire_Read(t *testing.T) {
	begun := time.Now().Add(time.Hour) // nothing is forgiven
	w, _ := newWire(begun)
	w.Conn = full{}
	large := make([]byte, 10*maxIdleBytes)
	for i := range 10 {
		n, err := w.Read(large)
		if err != nil {
			t.Fatalf("read %d of contents: %v", i, err)
		}
		w.pay(n)
	}
	if _, err := w.Read(large); err != nil {
		t.Errorf("the contents did not pay: %v", err)
	}
	if _, err := w.Read(large); !errors.Is(err, errIdleBytes) {
		t.Errorf("bytes that nothing paid for: got %v", err)
	}
	w, floods := newWire(begun)
	w.Conn = full{}
	_, _ = w.Read(make([]byte, maxIdleBytes))
	pings := 0
	for w.ping() == nil {
		pings++
	}
	if pings != websocketBufferBytes/pingBytes || *floods != 1 {
		t.Errorf("%d pings were answered, and it ended %d times", pings, *floods)
	}
}
