package node

import (
	"math"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that a leader measures a commit from when the last batch of it was logged, says so in the messages that tell of it, and
// forgets what it measured when it leads no more.
func TestWaits(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }
	entries := func(last consensus.Index) []consensus.Entry { return []consensus.Entry{{Index: last}} }
	commit := func(upto consensus.Index) raft.Commit {
		return raft.Commit{Upto: upto, Waited: consensus.Waited{WaitedFor: 2}}
	}
	w := &waits{}
	w.logged(at(0), entries(5), true)
	w.logged(at(10), entries(7), true)
	w.logged(at(20), entries(9), true)
	w.committed(at(30), commit(8), true)
	messages := []consensus.Message{
		{Kind: consensus.MsgAppend, Commit: 8, Waited: consensus.Waited{WaitedFor: 2}},
		{Kind: consensus.MsgHeartbeat, Commit: 8},
		{Kind: consensus.MsgHeartbeat, Commit: 7, Waited: consensus.Waited{WaitedFor: 2}},
		{Kind: consensus.MsgReadReply, Waited: consensus.Waited{WaitedFor: 2}},
	}
	w.say(messages)
	for i, want := range []uint32{20_000, 0, 0, 0} {
		if got := messages[i].AllTook; got != want {
			t.Errorf("message %d says %d µs, want %d", i, got, want)
		}
	}
	w.committed(at(40), raft.Commit{}, true)
	messages[0].AllTook = 0
	if w.say(messages); messages[0].AllTook != 20_000 { // a later message tells of it, too
		t.Errorf("a later message says %d µs, want 20000", messages[0].AllTook)
	}
	if w.committed(at(50), commit(9), true); w.commit.Waited.AllTook != 30_000 {
		t.Errorf("the last batch took %d µs, want 30000", w.commit.Waited.AllTook)
	}
	w.logged(at(60), entries(10), true)
	w.committed(at(70), raft.Commit{}, false)
	if w.committed(at(80), commit(10), false); w.commit.Waited.AllTook != 0 {
		t.Errorf("a follower measured %d µs", w.commit.Waited.AllTook)
	}
	for i := range 3 * maxWaits {
		w.logged(at(100+i), entries(consensus.Index(11+i)), true)
	}
	if len(w.batches) != maxWaits || w.batches[maxWaits-1].last != 10+3*maxWaits {
		t.Errorf("%d batches are kept, the last up to %d", len(w.batches), w.batches[len(w.batches)-1].last)
	}
}

func TestMicros(t *testing.T) {
	for took, want := range map[time.Duration]uint32{
		0: 1, time.Nanosecond: 1, 3 * time.Millisecond: 3000, -time.Second: 1, 1000 * time.Hour: math.MaxUint32,
	} {
		if got := Micros(took); got != want {
			t.Errorf("%v: got %d, want %d", took, got, want)
		}
	}
}
