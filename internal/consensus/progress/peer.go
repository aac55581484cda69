package progress

import "github.com/quorate/quorate/internal/consensus"

// State is the pace at which a follower is fed.
type State uint8

// The states.
const (
	Probe     State = 0
	Replicate State = 1
	Snapshot  State = 2
)

func (s State) String() string {
	switch s {
	case Probe:
		return "probe"
	case Replicate:
		return "replicate"
	case Snapshot:
		return "snapshot"
	}
	return "unknown"
}

// Peer is one other member as the leader sees it.
type Peer struct {
	ID    consensus.MemberID
	State State
	Match consensus.Index // durable there and equal to the leader's log
	Next  consensus.Index // first entry to send next
	Sent  bool            // Probe: an append is on its way

	// Since is the leader's round when Probe began last. Appends travel in order, so that the answer to one of this round, or
	// of a later one, says what became of all that was sent before Probe; the refusal of an earlier one says nothing any more.
	Since uint64
	// Asked says that an append without entries left in Probe, AskedAt in which round the last one did.
	Asked   bool
	AskedAt uint64

	// MatchRound is the leader's round when Match was last learned. A member that has heard a later one and denies Match has
	// lost what it acknowledged: it is Denied, and counts nowhere any more.
	MatchRound uint64
	Denied     bool

	Round       uint64          // the highest round that it echoed
	RoundSent   uint64          // the highest round that was sent to it
	CommitSent  consensus.Index // the highest commit index that was sent to it
	DurableSent consensus.Index // how far the leader's own disk was said to be
	LeaseEnd    uint64          // tick of the leader up to which it promised to elect no other
	Awaits      consensus.Index // the last entry of which it counts the acknowledgements itself
	HeartbeatBy bool            // a message is due even if there is nothing to say

	Heard   bool   // ever, in this term
	HeardAt uint64 // tick
	Broken  bool   // its connection broke since it was heard last

	Disk
	Feed

	Leaving   bool   // no longer in the configuration
	LeavesAt  uint64 // tick at which to forget it, once its removal committed; zero before
	Inflights Window
}

// Disk is what a member may have on its disk.
type Disk struct {
	End      consensus.Index // how far its log was on disk when it echoed EndRound
	EndRound uint64          // the highest round with whose echo it said so
	SentTo   consensus.Index // the last entry that it may have been sent in this term
}

// Feed is how a member is fed by a snapshot.
type Feed struct {
	// The log must keep what follows Floor until the follower is there; Offer is the snapshot it has received.
	Floor consensus.Index
	Offer consensus.Position
	// Outrun is set when the log no longer keeps what follows Floor. Outruns counts how often that happened in a row, and
	// SnapshotAt is the tick before which no other snapshot is sent.
	Outrun     bool
	Outruns    int
	SnapshotAt uint64
}

// New returns the view of a member of which nothing is known: it is probed at next.
func New(id consensus.MemberID, next consensus.Index, maxMessages, maxBytes int) *Peer {
	return &Peer{
		ID: id, Next: next, Disk: Disk{SentTo: next - 1}, Inflights: Window{maxMessages: maxMessages, maxBytes: maxBytes},
	}
}

// Paused reports whether no entries may be sent now.
func (p *Peer) Paused() bool {
	switch p.State {
	case Probe:
		return p.Sent
	case Replicate:
		return p.Inflights.Full()
	}
	return true
}

// NeverSent reports whether no entry from Next on was sent to the follower in this term: then even a probe may bear entries.
func (p *Peer) NeverSent() bool { return p.SentTo < p.Next }

// BecomeProbe asks, one append at a time, from where on the follower lacks entries. No append of that round may have left
// before.
func (p *Peer) BecomeProbe(round uint64) {
	next := p.Match + 1
	if p.State == Snapshot {
		next = max(next, p.Offer.Index+1)
	}
	p.reset(Probe)
	p.Next, p.Since = next, round
}

// Guess moves a probe that has not left from after Match to after last, if that is higher: the follower may have logged the
// entries between the two without acknowledging them. If it has not, it refuses the probe.
func (p *Peer) Guess(last consensus.Index) { p.Next = max(p.Next, last+1) }

// BecomeReplicate lets entries stream.
func (p *Peer) BecomeReplicate() {
	p.reset(Replicate)
	p.Next = p.Match + 1
	p.Outruns, p.SnapshotAt = 0, 0
}

// BecomeSnapshot stops entries until a snapshot is there. The log keeps what follows floor.
func (p *Peer) BecomeSnapshot(floor consensus.Index) {
	p.reset(Snapshot)
	p.Floor = floor
}

func (p *Peer) reset(s State) {
	p.State, p.Sent, p.Asked = s, false, false
	p.Floor, p.Offer, p.Outrun = 0, consensus.Position{}, false
	p.Inflights.reset()
}

// AskedIn reports whether an append of a round has left in Probe that bore no entries. A probe that bears some must be of a
// later one: else the answer to the former would be taken for its own.
func (p *Peer) AskedIn(round uint64) bool { return p.State == Probe && p.Asked && p.AskedAt == round }

// SentEntries notes an append of a round that ends with last. One without entries takes no room in the window. Where a probe
// bears entries, the answers to those before it, which bore none, do not end Probe: the entries would be sent again.
func (p *Peer) SentEntries(last consensus.Index, bytes int, round uint64) {
	p.SentTo = max(p.SentTo, last)
	switch {
	case p.State == Probe && last >= p.Next:
		p.Sent, p.Since = true, round
	case p.State == Probe:
		p.Sent, p.Asked, p.AskedAt = true, true, round
	case p.State == Replicate && last >= p.Next:
		p.Next = last + 1 // optimistic: the next append need not wait for this one's answer
		p.Inflights.Add(last, bytes)
	}
}

// Acknowledged notes that everything up to index is durable there, and that the leader learned so in this round.
func (p *Peer) Acknowledged(index consensus.Index, round uint64) {
	if index > p.Match {
		p.Match, p.MatchRound = index, round
		p.Inflights.FreeTo(index)
	}
	p.Next = max(p.Next, p.Match+1)
}

// Lost reports whether a member that has heard a round has less on its disk than it had acknowledged before that round.
func (p *Peer) Lost(durable consensus.Index, round uint64) bool {
	return durable < p.Match && round > p.MatchRound
}

// Lacks reports whether the refusal of the append of that round after prev shows that a follower, which is sent a stream,
// has not received what came before it.
func (p *Peer) Lacks(prev consensus.Index, round uint64) bool {
	return p.State == Replicate && round >= p.Since && prev > p.Match && prev < p.Next
}

// Refused notes that the probe after prev did not match, and that the logs may share entries up to guess. It reports false if
// the refusal is an old one that says nothing.
func (p *Peer) Refused(prev, guess consensus.Index, round uint64) bool {
	if p.State != Probe || prev != p.Next-1 || round < p.Since {
		return false
	}
	next := max(min(prev, guess+1), p.Match+1)
	if next == p.Next {
		return false // it denies what it acknowledged: do not argue at the speed of the network, wait for a heartbeat
	}
	p.Next, p.Sent = next, false
	return true
}
