package sim

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/plan"
)

// narrowed returns a world at rest with a link of so many bytes a second between two hosts, and a function that sends on it.
func narrowed(t *testing.T, rate, crowded int) (w *World, l *link, send func(kind consensus.MessageKind, bytes int)) {
	t.Helper()
	w, err := newWorld(Options{Seed: 1, Members: 3, Nemesis: "none"})
	if err != nil {
		t.Fatal(err)
	}
	n := w.cluster.net
	n.weather = plan.Weather{}
	w.run.plan.Queue = plan.Queue{Messages: 100, Bytes: 1 << 20}
	from, to := w.cluster.list[0], w.cluster.list[1]
	w.runUntil(time.Nanosecond, func() bool { return to.alive })
	l = &link{}
	n.links[[2]int{from.slot, to.slot}] = l
	n.narrow(l, rate, crowded)
	return w, l, func(kind consensus.MessageKind, bytes int) {
		m := consensus.Message{Kind: kind, From: from.id, To: to.id, Term: 1}
		if bytes > 0 {
			m.Entries = []consensus.Entry{{Index: 1, Term: 1, Payload: make([]byte, bytes)}}
		}
		n.put(from, to, l, []raft.Input{raft.Receive{Message: m}})
	}
}

// Ensure that a link keeps its rate, that a heartbeat overtakes entries only if there are many, and that waiting messages
// arrive when the link becomes wide.
func TestPipe_put(t *testing.T) {
	w, l, send := narrowed(t, 10_000, 5_000)
	send(consensus.MsgAppend, 4_000)
	send(consensus.MsgHeartbeat, 0)
	if l.express.count != 0 || l.ordered.count != 2 {
		t.Fatalf("%d messages wait on the express stream, %d on the other", l.express.count, l.ordered.count)
	}
	send(consensus.MsgAppend, 4_000)
	send(consensus.MsgHeartbeat, 0)
	send(consensus.MsgAppendReply, 0)
	if l.express.count != 1 || l.ordered.count != 4 {
		t.Fatalf("%d messages wait on the express stream, %d on the other", l.express.count, l.ordered.count)
	}
	begun, p := w.run.Now(), l.pipe
	for _, step := range []struct {
		after            time.Duration
		express, ordered int
	}{{50 * time.Millisecond, 0, 4}, {450 * time.Millisecond, 0, 3 - 1}, {900 * time.Millisecond, 0, 0}} {
		w.run.Pass(begun + step.after)
		if p.work(); l.express.count != step.express || l.ordered.count != step.ordered {
			t.Errorf("after %v %d messages wait on the express stream, %d on the other, want %+v", step.after, l.express.count,
				l.ordered.count, step)
		}
	}
	send(consensus.MsgAppend, 4_000)
	w.cluster.net.narrow(l, 0, 0)
	if l.pipe != nil || l.ordered.count != 0 || w.run.counts.Dropped != 0 {
		t.Errorf("%d messages wait for a wide link, %d were dropped", l.ordered.count, w.run.counts.Dropped)
	}
}

// Ensure that a queue drops messages that do not fit, and all messages when the link is cut.
func TestPipe_drops(t *testing.T) {
	w, l, send := narrowed(t, 1_000, 0)
	w.run.plan.Queue = plan.Queue{Messages: 3, Bytes: 5_000}
	send(consensus.MsgAppend, 100_000) // one always fits
	send(consensus.MsgAppend, 1)
	if l.ordered.count != 1 || w.run.counts.Overflowed != 1 {
		t.Errorf("%d messages wait, %d overflowed", l.ordered.count, w.run.counts.Overflowed)
	}
	w.cluster.net.cut(w.cluster.list[:1], w.cluster.list[1:2], false)
	if l.ordered.count != 0 || l.ordered.bytes != 0 || w.run.counts.Dropped != 2 {
		t.Errorf("%d messages wait, %d were dropped", l.ordered.count, w.run.counts.Dropped)
	}
}
