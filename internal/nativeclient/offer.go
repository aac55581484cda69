package nativeclient

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/member/offers"
)

// Stream is the stream to one voter.
type Stream struct {
	ID        uint64 // another one for each stream, never zero
	Open      bool   // it is up, under the id of the client, and has room for a message
	RoundTrip RoundTrip
}

// Offer is what leaves at once on the streams to the voters.
type Offer struct {
	Leader    uint64
	Proposals *quoratepb.ProposeRequest // for the leader
	Others    []uint64
	Records   *quoratepb.ProposeRequest // for each of the others; nil: they get nothing
}

// NoteView takes what a member says of the cluster, without its limits.
func (t *Table) NoteView(s *quoratepb.MemberStatus) { t.view.take(s) }

// Voters returns the voters that the client should have streams to: all, if offers are worth it, given the round trip to the
// nearest member and from which one on they are, or none.
func (t *Table) Voters(nearest, far time.Duration) []uint64 { return t.view.wanted(nearest, far) }

// Offer offers writes that were never sent to all voters at once, as many as a message holds, if the leader and a
// superquorum of the voters have a stream. It returns nil if there is nothing to offer.
func (t *Table) Offer(now time.Time, streams map[uint64]Stream) *Offer {
	v := &t.view
	leader := streams[v.Leader]
	if !v.fast || !leader.Open || !slices.Contains(v.Voters, v.Leader) {
		return nil
	}
	o := &Offer{Leader: v.Leader, Proposals: &quoratepb.ProposeRequest{}}
	for _, id := range v.Voters {
		if id != v.Leader && streams[id].Open {
			o.Others = append(o.Others, id)
		}
	}
	if len(o.Others)+1 < quorum.Super(len(v.Voters)) {
		return nil
	}
	mode := t.policy.Look(now, offers.Outcomes{
		Tried: t.stats.Offered, Agreed: t.stats.Won,
		Disagreed: t.stats.Offered - t.stats.Won, // why an offer failed is unknown here
	})
	if mode == offers.Paused { // the leader's answer alone comes first
		o.Others = nil
	}
	if o.Proposals.Proposals = t.take(leader.ID, o.Others); len(o.Proposals.Proposals) == 0 {
		return nil
	}
	if mode == offers.Paused {
		return o
	}
	o.Proposals.TermConfig = v.message()
	if mode == offers.Stamped {
		o.Proposals.Due = t.due(now, streams, o.Others)
	}
	o.Records = &quoratepb.ProposeRequest{
		TermConfig: o.Proposals.TermConfig, Due: o.Proposals.Due, Records: o.Proposals.Proposals,
	}
	return o
}

// due returns the stamp of an offer that leaves now: the time at which the voters that are needed have received it, by the
// clocks of the voters. Members wait for a stamp, so one by the clock of a client that is ahead would delay its offers.
func (t *Table) due(now time.Time, streams map[uint64]Stream, others []uint64) uint64 {
	var distances, offsets []time.Duration // of the leader first
	for _, id := range append([]uint64{t.view.Leader}, others...) {
		trip := streams[id].RoundTrip
		distances = append(distances, trip.Distance())
		if offset, known := trip.Offset(); known {
			offsets = append(offsets, offset)
		}
	}
	needed := quorum.Super(len(t.view.Voters)) - 1
	t.stamps.SetAhead(offers.Ahead(distances[0], distances[1:], needed))
	if len(offsets) > 0 { // else the members do not say what their clocks show
		slices.Sort(offsets)
		now = now.Add(offsets[(len(offsets)-1)/2])
	}
	return t.stamps.Next(now)
}

// take gives ids to writes that were never sent, which the leader's stream carries, and later their answers. Others will hold
// them, too; without others they go to the leader alone.
func (t *Table) take(leader uint64, others []uint64) []*quoratepb.Proposal {
	if t.closed != nil {
		return nil
	}
	var offered []*quoratepb.Proposal
	size := 0
	keep := t.queue[:0]
	for i, c := range t.queue {
		if c.ended || t.tooLarge(c) {
			continue
		}
		if c.attempts > 0 || c.race != nil {
			keep = append(keep, c)
			continue
		}
		size += len(c.request) + overheadBytes
		if len(offered) >= maxBatchCount || len(t.sent) >= maxUnanswered ||
			size > min(maxBatchBytes, t.message) && len(offered) > 0 || c.session == nil && !t.give(c) {
			keep = append(keep, t.queue[i:]...)
			break
		}
		offered = append(offered, c.proposal())
		c.attempts++
		c.stream, c.term = leader, t.view.term
		if len(others) > 0 {
			c.race = newRace(t.view, t.proposalID(c.name), others, t.options.Tally)
			t.stats.Offered++
		}
		t.sent[c.name] = c
	}
	clear(t.queue[len(keep):])
	t.queue = keep
	return offered
}

func (t *Table) proposalID(n name) consensus.ProposalID {
	session := consensus.SessionID{Member: consensus.MemberID(t.client), Number: n.session}
	return consensus.ProposalID{Session: session, Sequence: n.sequence}
}

func (c *Call) proposal() *quoratepb.Proposal {
	return &quoratepb.Proposal{
		Session: c.name.session, Sequence: c.name.sequence, Kind: c.kind, Request: c.request,
		Again: c.attempts > 0 || c.race != nil,
	}
}

// Verdicts handles the verdicts of a member on writes that were offered to it.
func (t *Table) Verdicts(member uint64, all *quoratepb.Verdicts) {
	on := termConfigOf(all.TermConfig)
	for _, v := range all.Verdicts {
		c := t.sent[name{v.Session, v.Sequence}]
		if c == nil {
			c = t.waits(name{v.Session, v.Sequence})
		}
		if c == nil || c.race == nil {
			continue
		}
		decision, decided := c.race.take(member, all.Leader, on, v)
		if !decided || c.ended || c.told {
			continue
		}
		decision.Config = on.config()
		// Decided, but perhaps not applied anywhere yet: its session must stay open until a member answers that it was
		// applied, or has refused to answer for long (askRefused).
		t.stats.Won++
		c.told, c.Response = true, decision.Reply
		c.Decided = &Decided{Decision: decision, Leader: c.race.view.Leader}
		c.session.early++
		c.race.over = true
		c.done()
	}
}

// waits finds a write that was offered and waits to be asked for again.
func (t *Table) waits(id name) *Call {
	for _, list := range [2][]*Call{t.later, t.queue} {
		for _, c := range list {
			if c.race != nil && c.name == id {
				return c
			}
		}
	}
	return nil
}

// StreamLost sends the writes of a voter's stream that has ended again, over the link.
func (t *Table) StreamLost(id uint64) {
	t.askAgain(func(c *Call) bool { return c.stream == id })
}

// newTerm sends writes that were offered in an earlier term again, over the link: the leader of that term may be gone.
func (t *Table) newTerm(term uint64) {
	if term > t.term {
		t.term = term
		t.askAgain(func(c *Call) bool { return c.stream != 0 && c.term < term })
	}
}

// askAgain queues unanswered writes, in order, for the link.
func (t *Table) askAgain(which func(*Call) bool) {
	var again []*Call
	for id, c := range t.sent {
		if !which(c) {
			continue
		}
		delete(t.sent, id)
		c.stream = 0
		if !c.ended {
			again = append(again, c)
		}
	}
	if len(again) > 0 {
		slices.SortFunc(again, func(a, b *Call) int { return cmp.Compare(a.order, b.order) })
		t.queue = append(again, t.queue...)
		t.signal()
	}
}

// mayBeHeld reports whether voters may hold a record of a write whose only attempt was refused. Then it is sent again
// after a pause, in which more voters answer.
func (c *Call) mayBeHeld() bool {
	if c.attempts != 1 || c.alone() || c.refusals >= maxRefusals {
		return false
	}
	c.refusals++
	c.attempts = 0 // it did nothing
	return true
}

// Settling reports whether there are writes that were answered by verdicts and are not known to be applied yet.
func (t *Table) Settling() bool {
	return t.current != nil && t.current.told() || t.previous != nil && t.previous.told()
}
