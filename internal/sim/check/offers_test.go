package check

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

func TestOffers_Judge(t *testing.T) {
	now := time.Duration(0)
	var o Offers
	offer := func(from consensus.MemberID) *consensus.Message {
		return &consensus.Message{Kind: consensus.MsgRecord, From: from, Due: 7}
	}
	o.Came(1, now, &consensus.Message{Kind: consensus.MsgRecord, From: 2}) // has no stamp
	o.Came(1, now, offer(2))
	o.Came(2, now, offer(3))
	now += time.Millisecond
	o.Came(1, now, offer(2)) // sent twice
	now = maxOfferWait
	o.Took(1, offer(2))
	o.Began(2)
	now++
	for _, member := range []consensus.MemberID{1, 2, 3} { // the offer that waited at 2 is gone
		if got := o.Judge(member, now); got != "" {
			t.Errorf("got %q, though nobody waits for too long", got)
		}
	}
	now += time.Millisecond
	if o.Judge(1, now) == "" || o.Stamped != 3 {
		t.Errorf("nothing was said of an offer that waits for too long; %d have stamps", o.Stamped)
	}
}
