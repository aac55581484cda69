package lab

import (
	"testing"
	"time"
)

// Ensure that the laws of the simulator hear of what leaves a member and of what its disk holds: an acknowledgement that leaves
// before the sync which covers it is noticed, and one that waits for it is not.
func TestJudge_durable(t *testing.T) {
	for _, early := range []bool{false, true} {
		w := newWorld(1, time.Millisecond, breaks{})
		w.start(3, 0, 3, false)
		follower := w.member(2)
		follower.disk.hang(true)
		w.clients.give(w.member(1), 1)
		w.runFor(2 * w.delay)
		if len(follower.disk.queue) == 0 || len(follower.disk.queue[0].After) == 0 {
			t.Fatal("nothing waits for the disk")
		}
		if early {
			w.net.sendAll(follower.disk.queue[0].After)
		}
		follower.disk.hang(false)
		w.runFor(10 * w.delay)
		found := w.brokenLaws()
		if early != (len(found) > 0) || early && found[0].Property != "durable-before-ack" {
			t.Errorf("sent before the sync: %t, noticed %v", early, found)
		}
	}
}
