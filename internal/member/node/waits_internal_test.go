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
	if len(w.batches) != maxWaits+1 || w.batches[maxWaits].last != 10+3*maxWaits {
		t.Errorf("%d batches are kept, the last up to %d", len(w.batches), w.batches[len(w.batches)-1].last)
	}
}

// Ensure that a leader tells the time of no batch for that of another one where more than it keeps have not committed, and times
// those again that are logged once there is room.
func TestWaits_many(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }
	const kept, all = maxWaits, maxWaits + 1000
	for _, row := range []struct {
		name  string
		upto  []consensus.Index // of the commits, all at one time; only the last one counts
		later int               // batches that are logged before the last commit
		took  time.Duration     // of the last commit, whose batch was logged at its index in ms; zero: nothing is told
	}{
		{"the last one that was kept", []consensus.Index{kept}, 0, (all + 10 - kept) * time.Millisecond},
		{"the first one that was not", []consensus.Index{kept + 1}, 0, 0},
		{"one in the middle of those", []consensus.Index{kept + 500}, 0, 0},
		{"one after a commit in their middle", []consensus.Index{kept + 500, kept + 600}, 0, 0},
		{"the last one of those", []consensus.Index{all}, 0, 0},
		{"one that was logged with the room of others", []consensus.Index{10, all + 1}, 1, 9 * time.Millisecond},
		{"those that were not, with later ones behind them", []consensus.Index{10, all}, 1, 0},
	} {
		w := &waits{}
		for i := range all {
			w.logged(at(i+1), []consensus.Entry{{Index: consensus.Index(i + 1)}}, true)
		}
		now := at(all + 10)
		for i, upto := range row.upto {
			if i == len(row.upto)-1 {
				for j := range row.later {
					w.logged(at(all+1+j), []consensus.Entry{{Index: consensus.Index(all + 1 + j)}}, true)
				}
			}
			w.committed(now, raft.Commit{Upto: upto, Waited: consensus.Waited{WaitedFor: 2}}, true)
		}
		want := uint32(row.took.Microseconds())
		last := row.upto[len(row.upto)-1]
		messages := []consensus.Message{{Kind: consensus.MsgAppend, Commit: last, Waited: consensus.Waited{WaitedFor: 2}}}
		if w.say(messages); w.commit.Waited.AllTook != want || messages[0].AllTook != want {
			t.Errorf("%s: took %d µs, and followers are told %d, want %d", row.name, w.commit.Waited.AllTook, messages[0].AllTook, want)
		}
		if len(w.batches) > maxWaits+1 {
			t.Errorf("%s: %d batches are kept", row.name, len(w.batches))
		}
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
