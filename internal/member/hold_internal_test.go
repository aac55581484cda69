package member

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that messages come out in the order of their stamps, whatever order they came in, and not before they are due.
func TestHolder_put_order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var got []string
		h := holder{now: time.Now, heard: map[consensus.MemberID]time.Time{}}
		h.deliver = func(messages []consensus.Message) {
			for i := range messages {
				got = append(got, fmt.Sprintf("%v of %v at %v", messages[i].Proposals[0].ID.Sequence, messages[i].From,
					time.Since(begun)))
			}
		}
		at := func(from consensus.MemberID, sequence uint64, after time.Duration) consensus.Message {
			m := consensus.Message{Kind: consensus.MsgRecord, From: from, Due: uint64(begun.Add(after).UnixNano())}
			m.Proposals = []consensus.Proposal{{ID: consensus.ProposalID{Sequence: sequence}}}
			return m
		}
		h.put(at(2, 1, 20*time.Millisecond))
		h.put(at(1, 1, 30*time.Millisecond), at(1, 2, 30*time.Millisecond), at(1, 3, 30*time.Millisecond))
		h.put(at(3, 1, 10*time.Millisecond), at(3, 2, -time.Millisecond), at(2, 2, 30*time.Millisecond))
		h.put(at(4, 1, time.Hour)) // of a clock that is wrong
		<-time.After(5 * time.Millisecond)
		h.put(at(5, 1, 15*time.Millisecond))
		<-time.After(time.Second)
		synctest.Wait()
		want := []string{"2 of 3 at 0s", "1 of 3 at 10ms", "1 of 5 at 15ms", "1 of 2 at 20ms",
			"1 of 1 at 30ms", "2 of 1 at 30ms", "3 of 1 at 30ms", "2 of 2 at 30ms", "1 of 4 at 30ms"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if !h.busy(5) || h.busy(6) {
			t.Error("5 has just proposed, 6 never has")
		}
		<-time.After(busyFor)
		if h.busy(5) {
			t.Error("5 has proposed nothing for long")
		}
	})
}

func TestHolder_stop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := holder{now: time.Now, heard: map[consensus.MemberID]time.Time{}}
		h.deliver = func([]consensus.Message) { t.Error("delivered after the end") }
		h.put(consensus.Message{Kind: consensus.MsgRecord, Due: uint64(time.Now().Add(time.Millisecond).UnixNano())})
		h.stop()
		<-time.After(time.Second)
		synctest.Wait()
	})
}

// Ensure that offers are stamped when members meet them in different orders, and not when they conflict; that they rest when
// few are agreed on; and that all of this is looked at again.
func TestPace_look(t *testing.T) {
	var p pace
	var counted outcomes
	now := time.Unix(1000, 0)
	second := func(o outcomes) paceMode {
		now = now.Add(paceLook)
		counted = outcomes{counted.tried + o.tried, counted.agreed + o.agreed, counted.disagreed + o.disagreed}
		return p.look(now, counted)
	}
	p.look(now, outcomes{})
	for _, step := range []struct {
		what    string
		seconds int
		each    outcomes
		want    paceMode
	}{
		{"all is well", 3, outcomes{100, 99, 1}, paceAtOnce},
		{"a handful tells nothing", 3, outcomes{paceFewest - 1, 0, 10}, paceAtOnce},
		{"conflicts are not mended by stamps", 3, outcomes{100, 50, 2}, paceAtOnce},
		{"different orders are", 1, outcomes{100, 50, 40}, paceStamped},
		{"what was offered before is still on its way", 1, outcomes{100, 10, 80}, paceStamped},
		{"stamps help", 10, outcomes{100, 60, 30}, paceStamped},
		{"and no more", 1, outcomes{100, 10, 80}, paceRest},
		{"a rest", int(paceRests/paceLook) - 1, outcomes{}, paceRest},
		{"is over", 1, outcomes{}, paceStamped},
		{"stamps help again", int(paceTryAtOnce/paceLook) - 1, outcomes{100, 60, 30}, paceStamped},
		{"are they still needed?", 1, outcomes{100, 60, 30}, paceAtOnce},
		{"what was stamped is still on its way", 1, outcomes{100, 60, 30}, paceAtOnce},
		{"they are", 1, outcomes{100, 60, 30}, paceStamped},
		{"until they are not", int(paceTryAtOnce / paceLook), outcomes{100, 99, 0}, paceAtOnce},
		{"everything meets one key", 2, outcomes{100, 5, 0}, paceRest},
		{"for a while", int(paceRests / paceLook), outcomes{}, paceAtOnce},
	} {
		var got paceMode
		for range step.seconds {
			got = second(step.each)
		}
		if got != step.want {
			t.Fatalf("%s: mode %d, want %d", step.what, got, step.want)
		}
	}
}

func TestStampAhead(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		leader time.Duration
		others []time.Duration
		super  int
		want   time.Duration
	}{
		{100 * ms, []time.Duration{20 * ms, 60 * ms, 300 * ms}, 4, 54 * ms}, // the leader is the farthest that is needed
		{40 * ms, []time.Duration{200 * ms, 300 * ms, 60 * ms}, 4, 108 * ms},
		{10 * ms, nil, 2, 6 * ms},
		{10 * ms, []time.Duration{20 * ms}, 4, 0}, // who else is needed is not known
	} {
		if got := stampAhead(tc.leader, tc.others, tc.super); got != tc.want {
			t.Errorf("leader %v, others %v, %d needed: %v, want %v", tc.leader, tc.others, tc.super, got, tc.want)
		}
	}
}
