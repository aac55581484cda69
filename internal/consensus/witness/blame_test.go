package witness_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/witness"
)

// Ensure that a proposer is barred from the third episode on, for twice as long each time, that what is given up at once is one
// episode, and that all is forgiven in the end.
func TestBlame_Strike(t *testing.T) {
	const episode = 100
	var b witness.Blame
	now := uint64(1000)
	for want := uint64(0); want < 4; want++ {
		for range 50 { // as after a crash
			b.Strike(7, now, episode)
		}
		barred := uint64(0)
		for b.Bars(7, now+barred) {
			barred++
		}
		if wants := []uint64{0, 0, 800, 1600}[want]; barred != wants {
			t.Errorf("strike %d: barred for %d ticks, want %d", want+1, barred, wants)
		}
		now += barred + episode
	}
	if b.Bars(8, now) {
		t.Error("another proposer is barred")
	}
	now += 2*(episode*8<<8) + 1000
	b.Strike(7, now, episode)
	if b.Bars(7, now+1) {
		t.Error("it is barred for the first strike after a long time")
	}
}

// Ensure that no more than so many are remembered, and that the oldest is forgotten.
func TestBlame_Strike_many(t *testing.T) {
	var b witness.Blame
	for i := range 3 {
		b.Strike(1, uint64(1000*i), 100)
	}
	b.Strike(2, 5000, 100)
	for i := range consensus.MemberID(witness.MaxBlamed - 1) {
		b.Strike(100+i, 6000, 100)
	}
	if b.Len() != witness.MaxBlamed || b.Bars(1, 2001) {
		t.Errorf("%d are remembered; the oldest is barred: %t", b.Len(), b.Bars(1, 2001))
	}
}
