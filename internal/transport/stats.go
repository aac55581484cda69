package transport

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// Stats is what a Transport has done so far.
type Stats struct {
	Peers     []PeerStats // sorted by id
	Snapshots []SnapshotStats
	Dropped   uint64 // messages to members that are no peers and have no stream to us
	Unmet     int    // streams and calls to us whose first frame has not arrived yet
	Silent    uint64 // such that were ended because it did not arrive
}

// PeerStats is what passed between us and one peer.
type PeerStats struct {
	Peer           consensus.MemberID
	ConnectedSince time.Time     // zero while the ordered stream is down
	RTT            time.Duration // zero while unknown
	RoundTrips     Trips
	Sent           Traffic
	SentExpress    Traffic // of Sent, what took the express stream
	Received       Traffic
	Dropped        uint64 // messages that found the queue full, that a new term made void in it, or that could not be sent
	Failures       uint64 // attempts to connect that came to nothing
	Losses         uint64 // calls of PeerLost
	Snapshots      uint64 // whose sending began
	// Fault is why connecting failed last, in a word: unreachable, unresolved (its name), untrusted, or the name of an
	// identity.Reason for which the peer refused us; empty: the peer is connected, or was never tried.
	Fault           string
	WaitingMessages int
	WaitingBytes    int
}

// Traffic is an amount of messages.
type Traffic struct {
	Messages, Frames, Bytes uint64
	Plain                   uint64         // bytes before frames were packed
	Cargo                   [Cargos]uint64 // of Plain, what was sent for what; of nothing that was received
}

// SnapshotStats is a snapshot on its way.
type SnapshotStats struct {
	Peer     consensus.MemberID
	Outgoing bool
	Bytes    uint64
	Began    time.Time
}

// Stats returns a copy of the counters.
func (t *Transport) Stats() Stats {
	stats := Stats{Dropped: t.dropped.Load(), Snapshots: t.progress.list()}
	stats.Unmet, stats.Silent = t.first.Counts()
	for _, p := range *t.peers.Load() {
		stats.Peers = append(stats.Peers, p.stats())
	}
	return stats
}

// PackingBytes tells how much memory packed streams take, of Options.Packing.Bytes.
func (t *Transport) PackingBytes() int64 { return t.options.Packing.Bytes - t.packs.left.Load() }

func (p *peer) stats() PeerStats {
	s := PeerStats{
		Peer:        p.id,
		RTT:         time.Duration(p.rtt.Load()),
		RoundTrips:  p.trips.trips(),
		SentExpress: p.express.count.traffic(),
		Received:    p.in.traffic(),
		Failures:    p.failures.Load(),
		Losses:      p.losses.Load(),
		Snapshots:   p.snapshots.Load(),
		Fault:       p.faultWord(),
	}
	s.ConnectedSince, _ = p.ordered.upSince()
	ordered := p.ordered.count.traffic()
	s.Sent = Traffic{
		Messages: ordered.Messages + s.SentExpress.Messages,
		Frames:   ordered.Frames + s.SentExpress.Frames,
		Bytes:    ordered.Bytes + s.SentExpress.Bytes,
		Plain:    ordered.Plain + s.SentExpress.Plain,
	}
	for i := range s.Sent.Cargo {
		s.Sent.Cargo[i] = ordered.Cargo[i] + s.SentExpress.Cargo[i]
	}
	for _, l := range []*peerStream{p.ordered, p.express} {
		messages, bytes, dropped := l.box.waiting()
		s.WaitingMessages += messages
		s.WaitingBytes += bytes
		s.Dropped += dropped
	}
	return s
}

func (c *counters) traffic() Traffic {
	t := Traffic{Messages: c.messages.Load(), Frames: c.frames.Load(), Bytes: c.bytes.Load(), Plain: c.plain.Load()}
	for i := range c.cargo {
		t.Cargo[i] = c.cargo[i].Load()
	}
	return t
}

// progress knows the snapshots that are on their way, in the order in which they began.
type progress struct {
	mu        sync.Mutex
	transfers []*transfer
}

type transfer struct {
	peer     consensus.MemberID
	outgoing bool
	began    time.Time
	bytes    atomic.Uint64
}

// begin notes a snapshot; done forgets it.
func (p *progress) begin(peer consensus.MemberID, outgoing bool) (tr *transfer, done func()) {
	tr = &transfer{peer: peer, outgoing: outgoing, began: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.transfers = append(p.transfers, tr)
	return tr, func() { p.end(tr) }
}

func (p *progress) end(tr *transfer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.transfers {
		if other == tr {
			p.transfers = append(p.transfers[:i], p.transfers[i+1:]...)
			return
		}
	}
}

func (p *progress) list() []SnapshotStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []SnapshotStats
	for _, tr := range p.transfers {
		all = append(all, SnapshotStats{Peer: tr.peer, Outgoing: tr.outgoing, Bytes: tr.bytes.Load(), Began: tr.began})
	}
	return all
}
