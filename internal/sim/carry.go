package sim

import (
	"bytes"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/dice"
)

// carry lets a snapshot travel to another host for a while.
func (h *host) carry(to consensus.MemberID, position consensus.Position, stream *bytes.Buffer, sent func(ok bool)) {
	peer := h.cluster.hosts[to]
	travel := h.cluster.net.delay() + time.Duration(stream.Len())*10*time.Nanosecond +
		dice.Between(h.rng, 0, 100*time.Millisecond)
	h.after(travel, func() {
		if peer == nil || !peer.alive || h.cluster.net.link(h.slot, peer.slot).cuts > 0 || h.rng.IntN(20) == 0 ||
			!h.cluster.net.meet(h, peer) {
			sent(false)
			return
		}
		ok := h.run.Now() >= peer.frozen && peer.proc.Snapshots.Receive(position, stream)
		h.after(h.cluster.net.delay(), func() { sent(ok && h.cluster.net.link(peer.slot, h.slot).cuts == 0) })
	})
}
