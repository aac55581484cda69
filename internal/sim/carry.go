package sim

import (
	"time"

	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/shell"
)

// carry sends a snapshot to another host, which takes a while.
func (h *host) carry(t *shell.Transfer) {
	net, peer := h.cluster.net, h.cluster.net.at(h, t.To)
	travel := net.delay() + time.Duration(t.Stream.Len())*10*time.Nanosecond + dice.Between(h.rng, 0, 100*time.Millisecond)
	arrive := func() {
		if t.Stopped || peer == nil || peer.id != t.To || !peer.alive || net.link(h.slot, peer.slot).cuts > 0 ||
			h.rng.IntN(20) == 0 || !net.meet(h, peer, false) {
			t.Sent(false)
			return
		}
		ok := h.run.Now() >= peer.frozen && peer.proc.Snapshots.Receive(h.id, t)
		h.after(net.delay(), func() { t.Sent(ok && net.link(peer.slot, h.slot).cuts == 0) })
	}
	h.after(travel, func() { h.squeeze(peer, t.Stream.Len(), arrive) })
}

// squeeze calls then once so many bytes have passed the link to another host besides its streams, if the link is narrow.
func (h *host) squeeze(peer *host, bytes int, then func()) {
	const step = 100 * time.Millisecond
	if peer == nil || peer == h || bytes <= 0 || h.cluster.net.link(h.slot, peer.slot).pipe == nil {
		then()
		return
	}
	rate := h.cluster.net.link(h.slot, peer.slot).pipe.rate
	h.after(step, func() { h.squeeze(peer, bytes-rate*int(step)/int(time.Second), then) })
}
