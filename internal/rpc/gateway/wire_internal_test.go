package gateway

import (
	"testing"
	"time"
)

// Ensure that what a websocket brings beside the contents of its messages is bounded, that contents, answers and time pay for it,
// and that neither time nor answers pay for more than is to come.
func TestWire_brought(t *testing.T) {
	begun := time.Unix(1000, 0)
	w := &wire{at: begun}
	if !w.brought(maxIdleBytes, begun) || w.brought(1, begun) {
		t.Error("the bound is another one")
	}
	w = &wire{at: begun}
	for range 1000 { // messages of 30 bytes, as renewals are, at once
		if !w.brought(36, begun) {
			t.Fatal("messages with contents are too many")
		}
		w.pay(30)
	}
	for range 1000 { // and on, if they are answered
		if !w.brought(36, begun) {
			t.Fatal("messages that are answered are too many")
		}
		w.pay(30)
		w.pay(answerBytes)
	}
	w = &wire{at: begun}
	now := begun
	for range 1000 { // pings twice a second
		now = now.Add(time.Second)
		if !w.brought(2*(6+pingBytes)-2*6, now) {
			t.Fatal("two pings a second are too many")
		}
	}
	w = &wire{at: begun}
	if later := begun.Add(24 * time.Hour); !w.brought(maxIdleBytes, later) || w.brought(1, later) {
		t.Error("a day without a byte paid for what came later")
	}
	w = &wire{at: begun}
	for range mostPaidBytes {
		w.pay(answerBytes)
	}
	if !w.brought(mostPaidBytes+maxIdleBytes, begun) || w.brought(1, begun) {
		t.Error("answers paid for more than they may ahead")
	}
}
