package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// learnLasts is how long, beyond elections, a member may know no leader that it would find if it asked. leaveElections is for a
// removed one: it believes a leader that its log does not know only once it has heard none for ten of its own elections.
const (
	learnLasts     = 4 * time.Second
	learnElections = 5
	leaveElections = 12
)

// election is the election timeout of this process.
func (h *host) election() time.Duration { return time.Duration(h.electionTicks) * h.run.plan.Tick }

// judge checks that a process does not fail for long to find a leader: it must ask the members that it finds.
func (u *unheard) judge(h, leader *host) {
	switch now := h.run.Now(); {
	case leader == nil || !leader.leads() || !h.couldLearn(leader) && !h.couldLeave(leader):
		*u = unheard{}
	case u.leader != leader || u.life != h.life:
		*u = unheard{leader, now, h.life}
	case now-u.since <= learnLasts+learnElections*h.extension():
	case leader.removed(h.id) && now-u.since <= learnLasts+leaveElections*h.election():
	case leader.removed(h.id):
		h.run.suite.Report("address", fmt.Sprintf("member %v was removed, finds leader %v, which knows it, and is not told "+
			"for %v", h.id, leader.id, now-u.since))
	default:
		h.run.suite.Report("address", fmt.Sprintf("member %v hears no leader for %v, and asks nobody that it finds where "+
			"leader %v is, at %s: it dials %v", h.id, now-u.since, leader.id, leader.url, h.routes[leader.id]))
	}
}

// couldLeave reports whether a process that knows no leader was removed, and finds the present leader, which knows that.
func (h *host) couldLeave(leader *host) bool {
	_, dials := h.routes[leader.id]
	return dials && h.guard != nil && h.proc.Node.Replica().Leader() == consensus.NoMember && h.run.Now() >= h.frozen &&
		h.run.Now() >= leader.frozen && !h.guard.Joins() && leader.removed(h.id) && h.claim.Epoch == leader.claim.Epoch &&
		h.cluster.net.at(h, leader.id) == leader && !h.cluster.net.severed(h, leader)
}

// couldLearn reports whether a process knows no leader, does not find the present one, and finds a member that knows its
// address.
func (h *host) couldLearn(leader *host) bool {
	replica := h.proc.Node.Replica()
	if _, dials := h.routes[leader.id]; h.guard == nil || replica.Leader() != consensus.NoMember || h.run.Now() < h.frozen ||
		h.guard.Joins() || dials && h.cluster.net.at(h, leader.id) == leader {
		return false
	}
	inForce := replica.InForce()
	return slices.ContainsFunc(h.dialled(&inForce.Config, inForce.ID), func(to *host) bool {
		config, id := to.proc.Data.Machine.Config()
		m, known := config.Member(leader.id)
		return known && inForce.ID.Index < id.Index && inForce.ID.Term <= id.Term && inForce.Config.Contains(to.id) &&
			to.claim.Epoch == h.claim.Epoch && h.cluster.leads(m.PeerURLs, leader)
	})
}
