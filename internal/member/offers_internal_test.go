package member

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

func offerOf(client consensus.MemberID, bytes int) consensus.Message {
	return consensus.Message{Kind: consensus.MsgRecord, From: client, Proposals: []consensus.Proposal{
		{Payload: make([]byte, bytes)},
	}}
}

// enterUntilFull offers messages and reports by a channel that is closed when one more than fit is in.
func enterUntilFull(o *offers, fit int, offer func(i int) consensus.Message) (in []raft.Input, more chan struct{}) {
	for i := range fit {
		m := offer(i)
		o.enter(&m)
		in = append(in, raft.Receive{Message: m})
	}
	more = make(chan struct{})
	go func() {
		m := offer(fit)
		if o.enter(&m) {
			close(more)
		}
	}()
	return in, more
}

func TestOffers_enter_waitsForRoom(t *testing.T) {
	const each = 1 << 20
	for _, test := range []struct {
		name  string
		fit   int
		offer func(i int) consensus.Message
	}{
		{"one client", maxClientOffered/each - 1, func(int) consensus.Message { return offerOf(7, each) }},
		{"many clients", maxOffered/each - 1, func(i int) consensus.Message { return offerOf(consensus.MemberID(i+1), each) }},
		{"one that is too large by itself", 1, func(int) consensus.Message { return offerOf(7, maxOffered) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var o offers
			o.init()
			in, more := enterUntilFull(&o, test.fit, test.offer)
			last := test.offer(test.fit)
			o.mu.Lock()
			fits := o.fits(last.From, offerBytes(&last))
			o.mu.Unlock()
			if fits {
				t.Fatalf("%d bytes wait, and one more offer is let in", o.waiting())
			}
			if got := o.waiting(); test.fit > 1 && got > maxOffered {
				t.Errorf("%d bytes wait, want %d at most", got, maxOffered)
			}
			o.taken(in)
			<-more
			o.taken([]raft.Input{raft.Receive{Message: last}})
			if o.waiting() != 0 || len(o.clients) != 0 {
				t.Errorf("all is taken, and %d bytes of %d clients wait", o.waiting(), len(o.clients))
			}
		})
	}
}

// Messages of members, and other messages, make no room.
func TestOffers_taken_others(t *testing.T) {
	var o offers
	o.init()
	mine, theirs, other := offerOf(7, 100), offerOf(8, 100), offerOf(7, 100)
	other.Kind = consensus.MsgHeartbeat
	o.enter(&mine)
	before := o.waiting()
	o.taken([]raft.Input{raft.Receive{Message: theirs}, raft.Receive{Message: other}, raft.Tick{}})
	if got := o.waiting(); got != before {
		t.Errorf("%d bytes wait, want %d", got, before)
	}
}

func TestOffers_close(t *testing.T) {
	var o offers
	o.init()
	_, more := enterUntilFull(&o, 1, func(int) consensus.Message { return offerOf(7, maxOffered) })
	o.close()
	m := offerOf(9, 1)
	if o.enter(&m) {
		t.Error("an offer was let in after the end")
	}
	select {
	case <-more:
		t.Error("an offer that waited was let in at the end")
	default:
	}
}
