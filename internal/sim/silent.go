package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/nativeclient"
)

// clientPatience is how long a native client may be silent before its sessions are retired: longer than a client takes to
// notice that a stream is dead, and less than faults last.
const clientPatience = 8 * time.Second

// mostUnheard is how long it may take until the leader hears of a client: a ping, and two scans of members.
const mostUnheard = nativeclient.PingInterval + clientPatience/8

// tellHeard tells the leader which native clients this process heard from, unless the way there is cut. Peer calls are not
// simulated: it takes no time.
func (h *host) tellHeard(leader consensus.MemberID, heard []consensus.MemberID) error {
	if h.run.broken.Untold {
		return nil
	}
	to := h.cluster.net.at(h, leader)
	if to == nil || to.proc == nil || !to.leads() || h.cluster.net.severed(h, to) || h.run.Now() < to.frozen {
		return member.ErrNoLeader
	}
	to.proc.Heard(heard)
	return nil
}

// judgeSilent checks, once the faults are over, that the client of a session that is to be retired was silent: it had no stream
// on which a member that runs heard its pings.
func (h *host) judgeSilent(session consensus.SessionID) {
	since := h.run.Now() - clientPatience - mostUnheard
	if !h.run.calm || since < h.run.calmed {
		return
	}
	if to, linked := h.run.load.Linked(session.Member, since); linked {
		h.run.suite.Report("client-silent", fmt.Sprintf("leader %v retires the sessions of native client %v, which has had a "+
			"stream to member %v for longer than %v", h.id, session.Member, to.ID(), clientPatience))
	}
}

// silentForgotten waits until the sessions of native clients that had gone when the faults were over are retired, and so long
// that those of others would be, if no member heard them.
func (w *World) silentForgotten() bool {
	var left consensus.SessionID
	forgotten := func() bool {
		for _, h := range w.cluster.up() {
			if !h.leads() || !h.serves() {
				continue
			}
			open := h.proc.Data.Machine.ClientSessions()
			gone := slices.IndexFunc(open, func(s consensus.SessionID) bool { return w.load.Gone(s.Member, w.run.calmed) })
			if gone < 0 {
				return true
			}
			left = open[gone]
		}
		return false
	}
	if w.runUntil(w.run.Now()+2*w.patience()+3*clientPatience, forgotten) {
		return w.run.plan.Mix.Natives == 0 ||
			!w.runUntil(w.run.calmed+2*(clientPatience+mostUnheard), w.run.suite.Failed)
	}
	if !w.run.suite.Failed() {
		w.run.suite.Report("client-silent", fmt.Sprintf("session %v of a native client that has gone stays open: %s", left,
			w.cluster.describe()))
	}
	return false
}
