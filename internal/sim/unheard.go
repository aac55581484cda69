package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// learnLasts is for how long, beyond elections, a member may hear no leader that it would find if it asked.
const (
	learnLasts     = 4 * time.Second
	learnElections = 5
)

// judge checks that it does not last that a leader is unheard: the process asks them.
func (u *unheard) judge(h, leader *host) {
	switch now := h.run.Now(); {
	case leader == nil || !h.couldLearn(leader):
		*u = unheard{}
	case u.leader != leader || u.life != h.life:
		*u = unheard{leader, now, h.life}
	case now-u.since > learnLasts+learnElections*h.extension():
		h.run.suite.Report("address", fmt.Sprintf("member %v hears no leader for %v, and asks nobody that it finds where "+
			"leader %v is, at %s: it dials %v", h.id, now-u.since, leader.id, leader.url, h.routes[leader.id]))
	}
}

// couldLearn reports whether a process hears no leader, does not find the one that there is, and finds somebody who knows.
func (h *host) couldLearn(leader *host) bool {
	replica := h.proc.Node.Replica()
	if _, dials := h.routes[leader.id]; !dials || h.pilot == nil || replica.Leader() != consensus.NoMember ||
		h.run.Now() < h.frozen || h.cluster.net.at(h, leader.id) == leader {
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
