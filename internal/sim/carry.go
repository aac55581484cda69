package sim

import (
	"time"

	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/shell"
)

// carry lets a snapshot travel to another host for a while.
func (h *host) carry(t *shell.Transfer) {
	net, peer := h.cluster.net, h.cluster.hosts[t.To]
	travel := net.takes(h, peer, t.Stream.Len())
	travel += net.delay() + time.Duration(t.Stream.Len())*10*time.Nanosecond + dice.Between(h.rng, 0, 100*time.Millisecond)
	h.after(travel, func() {
		if t.Stopped || peer == nil || !peer.alive || net.link(h.slot, peer.slot).cuts > 0 || h.rng.IntN(20) == 0 ||
			!net.meet(h, peer) {
			t.Sent(false)
			return
		}
		ok := h.run.Now() >= peer.frozen && peer.proc.Snapshots.Receive(h.id, t)
		h.after(net.delay(), func() { t.Sent(ok && net.link(peer.slot, h.slot).cuts == 0) })
	})
}
