package transport

import (
	"testing"
	"time"
)

// Ensure that a process that calls in a member's name makes this member ask there eight times at once, and then once a second.
func TestConfirmations_mayAsk(t *testing.T) {
	var v confirmations
	now := time.Unix(1000, 0)
	asked := func() (n int) {
		for range 100 {
			if v.mayAsk(now) {
				n++
			}
		}
		return n
	}
	if n := asked(); n != int(confirmBurst/confirmPause) {
		t.Errorf("%d questions at once", n)
	}
	now = now.Add(3 * confirmPause)
	if n := asked(); n != 3 {
		t.Errorf("%d questions in three seconds", n)
	}
	now = now.Add(time.Hour)
	if n := asked(); n != int(confirmBurst/confirmPause) {
		t.Errorf("%d questions at once, an hour later", n)
	}
}

// Ensure that an answer covers the token that it was made with, and no other, and that no answer covers none.
func TestConfirmations_cover(t *testing.T) {
	own, other := newToken(), newToken()
	var v confirmations
	if v.cover(&own) || v.cover(&token{}) {
		t.Error("a stream is covered, and nobody has answered")
	}
	challenge := [challengeBytes]byte{1}
	v.note(challenge, own.answer(challenge[:]))
	if !v.cover(&own) || v.cover(&other) || v.cover(&token{}) {
		t.Error("the answer does not cover its token, or covers another one")
	}
	for _, sum := range [][]byte{nil, {}, make([]byte, 1<<10)} {
		if v.note(challenge, sum); v.cover(&own) || v.cover(&token{}) {
			t.Errorf("an answer of %d bytes, of a member that opens no streams to this one, confirms one", len(sum))
		}
	}
}

// Ensure that a stream which the last answer covers does not wait for a question that another process has caused.
func TestPeer_confirmed_whileAsking(t *testing.T) {
	own, challenge := newToken(), [challengeBytes]byte{1}
	p := &peer{}
	p.confirmations.note(challenge, own.answer(challenge[:]))
	if _, fresh := p.confirmations.ask(time.Now()); !fresh {
		t.Fatal("no question is out")
	}
	if !p.confirmed(t.Context(), &own) {
		t.Error("the member's own stream is not confirmed")
	}
}
