package transport

import (
	"errors"
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

// hear takes answers to a challenge.
func (v *confirmations) hear(challenge [challengeBytes]byte, sums ...[]byte) {
	var said replies
	for _, sum := range sums {
		said.add(challenge, sum, nil)
	}
	v.note(&said)
}

// Ensure that an answer covers the token that it was made with, and no other, and that no answer covers none.
func TestConfirmations_cover(t *testing.T) {
	own, other := newToken(), newToken()
	var v confirmations
	if v.cover(&own) || v.cover(&token{}) {
		t.Error("a stream is covered, and nobody has answered")
	}
	challenge := [challengeBytes]byte{1}
	v.hear(challenge, own.answer(challenge[:]))
	if !v.cover(&own) || v.cover(&other) || v.cover(&token{}) {
		t.Error("the answer does not cover its token, or covers another one")
	}
	for _, sum := range [][]byte{nil, {}, make([]byte, 1<<10)} {
		if v.hear(challenge, sum); v.cover(&own) || v.cover(&token{}) {
			t.Errorf("an answer of %d bytes, of a member that opens no streams to this one, confirms one", len(sum))
		}
	}
	var silent, liar replies
	silent.add(challenge, nil, errors.New("refused"))
	liar.add(challenge, nil, ErrLargeAnswer)
	v.hear(challenge, own.answer(challenge[:]))
	if v.note(&silent); !v.cover(&own) {
		t.Error("a URL where nobody answers takes back an answer")
	}
	if v.note(&liar); v.cover(&own) {
		t.Error("a false answer is no answer")
	}
}

// Ensure that a stream which the last answer covers does not wait for a question that another process has caused.
func TestPeer_confirmed_whileAsking(t *testing.T) {
	own, challenge := newToken(), [challengeBytes]byte{1}
	p := &peer{}
	p.confirmations.hear(challenge, own.answer(challenge[:]))
	if _, fresh := p.confirmations.ask(time.Now()); !fresh {
		t.Fatal("no question is out")
	}
	if !p.confirmed(t.Context(), &own) {
		t.Error("the member's own stream is not confirmed")
	}
}
