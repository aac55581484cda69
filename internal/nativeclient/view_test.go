package nativeclient

import (
	"testing"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
)

// TestView_take keeps the latest term and configuration, and the word of a member that knows no leader not at all.
func TestView_take(t *testing.T) {
	status := func(leader, term, config uint64) *quoratepb.MemberStatus {
		return &quoratepb.MemberStatus{
			Leader: leader, Voters: []uint64{1, 2, 3}, Fast: true, TermConfig: &quoratepb.TermConfig{Term: term, ConfigIndex: config},
		}
	}
	var v View
	for _, step := range []struct{ leader, term, config, want uint64 }{
		{1, 3, 9, 1}, {2, 2, 9, 1}, {2, 3, 8, 1}, {0, 4, 9, 1}, {2, 3, 10, 2}, {3, 4, 10, 3},
	} {
		v.take(status(step.leader, step.term, step.config))
		if v.Leader != step.want {
			t.Errorf("after %+v: leader %d", step, v.Leader)
		}
	}
	if len(v.wanted(FarAway, FarAway)) != 3 || v.wanted(FarAway-1, FarAway) != nil {
		t.Error("offers pay from a millisecond on")
	}
	v.Voters = v.Voters[:2]
	if v.wanted(FarAway, FarAway) != nil {
		t.Error("offers to two voters save nothing")
	}
}

// TestRoundTrip_Answered takes what is shorter at once, what is longer by and by, and answers to older pings not at all.
func TestRoundTrip_Answered(t *testing.T) {
	const ms = time.Millisecond
	var r RoundTrip
	now := time.Unix(1000, 0)
	for i, step := range []struct{ took, want time.Duration }{{40 * ms, 40 * ms}, {20 * ms, 20 * ms}, {60 * ms, 30 * ms}} {
		ping := r.Ping(now)
		now = now.Add(step.took)
		if r.Answered(now, ping-1, 0) || r.Answered(now, 0, 0) {
			t.Error("an answer to another ping counts")
		}
		if first := r.Answered(now, ping, 0); first != (i == 0) || r.Distance() != step.want {
			t.Errorf("after %v: %v, first %v, want %v", step.took, r.Distance(), first, step.want)
		}
	}
}

// TestRoundTrip_Offset believes the answer that was on its way for the shortest time, and later ones that are nearly as fast.
func TestRoundTrip_Offset(t *testing.T) {
	const ms = time.Millisecond
	var r RoundTrip
	now := time.Unix(1000, 0)
	if _, known := r.Offset(); known {
		t.Error("known before it was measured")
	}
	for _, step := range []struct{ out, back, clock, want time.Duration }{ // clock: how far the member's is ahead
		{40 * ms, 0, 100 * ms, 120 * ms},
		{10 * ms, 10 * ms, 100 * ms, 100 * ms},
		{0, 500 * ms, 100 * ms, 100 * ms}, // too slow
		{10 * ms, 10 * ms, -30 * ms, -30 * ms},
	} {
		ping := r.Ping(now)
		clock := uint64(now.Add(step.out + step.clock).UnixNano())
		now = now.Add(step.out + step.back)
		r.Answered(now, ping, clock)
		if got, known := r.Offset(); got != step.want || !known {
			t.Errorf("after %+v: %v, %v", step, got, known)
		}
		now = now.Add(PingInterval)
	}
	var old RoundTrip // to a member that does not say
	if old.Answered(now.Add(ms), old.Ping(now), 0); old.Distance() != ms {
		t.Error("no round trip without a clock")
	}
	if _, known := old.Offset(); known {
		t.Error("known without a clock")
	}
}
