package lanes

import (
	"testing"
	"testing/synctest"

	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that a member that sends more than the loop takes is blocked, and no other one; and that Close unblocks it.
func TestInbox_putPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := func(from consensus.MemberID) []consensus.Message {
			entries := []consensus.Entry{{Payload: make([]byte, 100_000)}}
			return []consensus.Message{{Kind: consensus.MsgAppend, From: from, Entries: entries}}
		}
		b := &Inbox{}
		b.init(250_000, func() {})
		sent := 0
		go func() {
			for range 5 {
				b.PutPaced(2, large(2))
				sent++
			}
		}()
		synctest.Wait()
		if sent != 2 {
			t.Fatalf("%d deliveries of 100 kB wait", sent)
		}
		b.PutPaced(3, large(3)) // does not block
		if got := len(b.take()); got != 3 {
			t.Errorf("%d messages were taken", got)
		}
		synctest.Wait()
		if sent != 4 {
			t.Errorf("%d deliveries after the first were taken", sent)
		}
		b.Close()
		synctest.Wait()
		if sent != 5 {
			t.Errorf("%d deliveries when the member stops", sent)
		}
		alone := &Inbox{}
		alone.init(1, func() {})
		alone.PutPaced(2, large(2)) // a single delivery is taken, however large
	})
}
