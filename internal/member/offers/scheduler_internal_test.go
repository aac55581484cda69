package offers

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that messages come out in the order of their stamps, whatever order they came in, and not before they are due.
func TestScheduler_Take_order(t *testing.T) {
	begun := time.Unix(1000, 0)
	now := begun
	p := New(Auto, Faults{})
	var got []string
	take := func() {
		for _, m := range p.Take(nil, now) {
			got = append(got, fmt.Sprintf("%v of %v at %v", m.Proposals[0].ID.Sequence, m.From, now.Sub(begun)))
		}
	}
	put := func(from consensus.MemberID, sequence uint64, after time.Duration) {
		m := consensus.Message{Kind: consensus.MsgRecord, From: from, Due: uint64(begun.Add(after).UnixNano())}
		m.Proposals = []consensus.Proposal{{ID: consensus.ProposalID{Sequence: sequence}}}
		if !p.Delay(now, &m) {
			t.Fatalf("%+v has no stamp", m)
		}
		take()
	}
	const ms = time.Millisecond
	put(2, 1, 20*ms)
	put(1, 1, 30*ms)
	put(1, 2, 30*ms)
	put(1, 3, 30*ms)
	put(3, 1, 10*ms)
	put(3, 2, -ms)
	put(2, 2, 30*ms)
	now = now.Add(5 * ms)
	put(5, 1, 15*ms)
	for {
		due, waits := p.Next()
		if !waits {
			break
		}
		now = due
		take()
	}
	want := []string{"2 of 3 at 0s", "1 of 3 at 10ms", "1 of 5 at 15ms", "1 of 2 at 20ms",
		"1 of 1 at 30ms", "2 of 1 at 30ms", "3 of 1 at 30ms", "2 of 2 at 30ms"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !p.busy(now, 5) || p.busy(now, 6) {
		t.Error("5 has just proposed, 6 never has")
	}
	if now = now.Add(busyFor); p.busy(now, 5) {
		t.Error("5 has proposed nothing for long")
	}
}

// Ensure that the stamp of a clock that is far ahead is not waited for, also while something else always waits.
func TestScheduler_Delay_farAhead(t *testing.T) {
	now := time.Unix(1000, 0)
	p := New(Auto, Faults{})
	offer := func(from consensus.MemberID, after time.Duration) bool {
		return p.Delay(now, &consensus.Message{Kind: consensus.MsgRecord, From: from, Due: uint64(now.Add(after).UnixNano())})
	}
	for _, ahead := range []time.Duration{time.Hour, math.MaxInt64} {
		waits := offer(4, ahead)
		for range 10 {
			if !offer(1, maxWait) {
				t.Fatal("a stamp is not waited for")
			}
			now = now.Add(maxWait / 2)
			waits = waits && !slices.ContainsFunc(p.Take(nil, now), func(m consensus.Message) bool { return m.From == 4 })
		}
		if waits {
			t.Errorf("a message waits for %v, because its stamp is %v ahead", 5*maxWait, ahead)
		}
	}
}

// Ensure that nothing waits any longer once the member's own clock is put back.
func TestScheduler_Take_clockPutBack(t *testing.T) {
	now := time.Unix(1000, 0)
	p := New(Auto, Faults{})
	m := consensus.Message{Kind: consensus.MsgRecord, From: 1, Due: uint64(now.Add(maxWait).UnixNano())}
	if !p.Delay(now, &m) || len(p.Take(nil, now)) != 0 || len(p.Take(nil, now.Add(-time.Second))) != 1 {
		t.Error("want it to wait until then")
	}
}

// Ensure that an offer does not wait for a stamp of before the clock was put back, also while others always come after it.
func TestScheduler_Take_clockPutBack_load(t *testing.T) {
	now := time.Unix(1000, 0)
	p := New(Auto, Faults{})
	offer := func(from consensus.MemberID, after time.Duration) {
		m := consensus.Message{Kind: consensus.MsgRecord, From: from, Due: uint64(now.Add(after).UnixNano())}
		if !p.Delay(now, &m) {
			t.Fatalf("an offer that is due in %v does not wait", after)
		}
	}
	offer(4, maxWait)
	p.Take(nil, now)
	now = now.Add(-10 * time.Second)
	for put := now; now.Sub(put) <= maxWait; now = now.Add(10 * time.Millisecond) {
		offer(1, 20*time.Millisecond)
		for _, m := range p.Take(nil, now) {
			if m.From == 4 {
				return
			}
		}
	}
	t.Error("it still waits")
}

func TestScheduler_Delay_noStamp(t *testing.T) {
	p := New(Auto, Faults{})
	for _, m := range []consensus.Message{{Kind: consensus.MsgRecord}, {Kind: consensus.MsgHeartbeat, Due: 5}} {
		if _, waits := p.Next(); p.Delay(time.Unix(1, 0), &m) || waits {
			t.Errorf("%+v waits", m)
		}
	}
}

// Ensure that a member's clock that goes back makes no stamp smaller, and that nothing else is marked.
func TestStamps_Stamp(t *testing.T) {
	var s Stamps
	now := time.Unix(1000, 0)
	stamp := func(now time.Time) []consensus.Message {
		messages := []consensus.Message{
			{Kind: consensus.MsgHeartbeat}, {Kind: consensus.MsgRecord}, {Kind: consensus.MsgFastPropose},
		}
		s.Stamp(now, messages)
		return messages
	}
	if got := stamp(now); got[1].Due != 0 {
		t.Errorf("got %+v, though nobody asked for stamps", got)
	}
	s.SetAhead(time.Millisecond)
	first, second := stamp(now), stamp(now.Add(-time.Second))
	want := uint64(now.Add(time.Millisecond).UnixNano())
	if first[0].Due != 0 || first[1].Due != want || first[2].Due != want || second[1].Due != want+1 {
		t.Errorf("got %+v and %+v", first, second)
	}
}

// Ensure that a member counts only with a leader far away, and offers only where that can gain something.
func TestScheduler_Decide(t *testing.T) {
	const ms = time.Millisecond
	far := func(consensus.MemberID) (time.Duration, bool) { return 50 * ms, true }
	near := func(consensus.MemberID) (time.Duration, bool) { return ms / 10, true }
	five, three := []consensus.MemberID{1, 2, 3, 4, 5}, []consensus.MemberID{1, 2, 3}
	for _, row := range []struct {
		name           string
		setting        Setting
		view           View
		counts, offers bool
	}{
		{"far away", Auto, View{Leader: 2, Voters: five, Distance: far}, true, true},
		{"few voters", Auto, View{Leader: 2, Voters: three, Distance: far}, true, false},
		{"few voters, always", Always, View{Leader: 2, Voters: three, Distance: far}, true, true},
		{"near", Auto, View{Leader: 2, Voters: five, Distance: near}, false, false},
		{"near, always", Always, View{Leader: 2, Voters: five, Distance: near}, true, true},
		{"never", Never, View{Leader: 2, Voters: five, Distance: far}, false, false},
		{"the leader itself", Always, View{Leader: 1, Voters: five, Distance: far}, false, false},
		{"no leader", Always, View{Voters: five, Distance: far}, false, false},
		{"no configuration", Always, View{Leader: 2, Distance: far}, true, false},
	} {
		row.view.Self = 1
		counts, offers := New(row.setting, Faults{}).Decide(time.Unix(1, 0), &row.view)
		if counts != row.counts || offers != row.offers {
			t.Errorf("%s: counts %v, offers %v; want %v, %v", row.name, counts, offers, row.counts, row.offers)
		}
	}
}

// Ensure that a voter whose distance is not known counts as none, and not as one that is near: an offer must be due when enough
// voters have it.
func TestScheduler_ahead_unknownVoter(t *testing.T) {
	now := time.Unix(1000, 0)
	distances := map[consensus.MemberID]time.Duration{1: 0, 2: 20 * time.Millisecond, 3: 40 * time.Millisecond}
	v := View{Self: 1, Leader: 2, Voters: []consensus.MemberID{1, 2, 3, 4},
		Distance: func(id consensus.MemberID) (time.Duration, bool) { d, known := distances[id]; return d, known }}
	p := New(Auto, Faults{})
	want := Ahead(20*time.Millisecond, []time.Duration{40 * time.Millisecond}, 1)
	if got := p.ahead(now, &v); got != want {
		t.Errorf("%s ahead, want %s, when 2 and 3 have it", got, want)
	}
	delete(distances, 3)
	if got := p.ahead(now, &v); got != 0 {
		t.Errorf("%s ahead, want none: too few distances are known", got)
	}
}

// Ensure that a member counts as one that proposes for so long after it was heard, and no longer.
func TestScheduler_busy(t *testing.T) {
	now := time.Unix(1000, 0)
	p := New(Auto, Faults{})
	p.Delay(now, &consensus.Message{Kind: consensus.MsgRecord, From: 3, Due: uint64(now.UnixNano())})
	if !p.busy(now.Add(busyFor-1), 3) || p.busy(now.Add(busyFor), 3) || p.busy(now, 4) {
		t.Errorf("busy just before %s: %t, then: %t; one that was never heard: %t",
			busyFor, p.busy(now.Add(busyFor-1), 3), p.busy(now.Add(busyFor), 3), p.busy(now, 4))
	}
}
