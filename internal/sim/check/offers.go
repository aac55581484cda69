package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/offers"
)

// maxOfferWait bounds how long an offer may wait for its stamp: a quarter of a second by a clock that may be slow (package
// offers, invariant 2).
const maxOfferWait = 260 * time.Millisecond

// Offers checks that members handle offers soon, whatever the clock that stamped them showed.
type Offers struct {
	Stamped uint64 // offers with a stamp that members received

	waiting map[consensus.MemberID][]waitingOffer
}

type waitingOffer struct {
	kind  consensus.MessageKind
	from  consensus.MemberID
	due   uint64
	id    consensus.ProposalID
	since time.Duration
}

func offerOf(m *consensus.Message) waitingOffer {
	w := waitingOffer{kind: m.Kind, from: m.From, due: m.Due}
	if len(m.Proposals) > 0 {
		w.id = m.Proposals[0].ID
	}
	return w
}

// Began records that a member started: its waiting offers are gone.
func (o *Offers) Began(member consensus.MemberID) { delete(o.waiting, member) }

// Came records that a member's loop has received a message, which need not be an offer.
func (o *Offers) Came(member consensus.MemberID, now time.Duration, m *consensus.Message) {
	if !offers.HasStamp(m) {
		return
	}
	if o.waiting == nil {
		o.waiting = map[consensus.MemberID][]waitingOffer{}
	}
	o.Stamped++
	w := offerOf(m)
	w.since = now
	o.waiting[member] = append(o.waiting[member], w)
}

// Took records that a member's core has received a message, which need not be an offer.
func (o *Offers) Took(member consensus.MemberID, m *consensus.Message) {
	waiting := o.waiting[member]
	if len(waiting) == 0 || !offers.HasStamp(m) {
		return
	}
	took := offerOf(m)
	at := slices.IndexFunc(waiting, func(w waitingOffer) bool {
		w.since = 0
		return w == took
	})
	if at >= 0 {
		o.waiting[member] = slices.Delete(waiting, at, at+1)
	}
}

// Judge describes an offer that waits for too long at a member whose loop has just had a step; empty: there is none.
func (o *Offers) Judge(member consensus.MemberID, now time.Duration) string {
	waiting := o.waiting[member]
	if len(waiting) == 0 || now-waiting[0].since <= maxOfferWait { // the first is the oldest
		return ""
	}
	w := waiting[0]
	return fmt.Sprintf("member %v has not looked at an offer of %v, due at %d, for %v", member, w.from, w.due, now-w.since)
}
