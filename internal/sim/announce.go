package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/sim/joins"
	"github.com/quorate/quorate/internal/sim/places"
	"github.com/quorate/quorate/internal/sim/routines"
)

// addressScan is how often a member checks whether an address must be corrected.
const addressScan = time.Second

// announces is the state of a process's announcement of its address.
type announces struct {
	telling autopilot.Telling
	asks    bool
	life    int
}

// keepAddresses corrects addresses, as package member does: its own, after a start at another one, and on the leader those that
// were not confirmed when they were changed.
func (h *host) keepAddresses() {
	h.after(addressScan, h.keepAddresses)
	if h.leads() {
		h.pilot.requests.SettleAddresses(context.Background())
	}
	if h.announces.life != h.life {
		h.announces = announces{life: h.life}
	}
	config, _ := h.proc.Data.Machine.Config()
	if h.announces.telling.Look(&config, h.id) && !h.announces.asks && h.impostor == "" && !h.run.broken.MovesUntold {
		h.announce(&config)
	}
}

// keepWhereabouts keeps the addresses that other members reported.
func (h *host) keepWhereabouts() {
	h.after(addressScan, h.keepWhereabouts)
	h.forgetTold()
	h.tellRemoved()
	h.learn()
}

// tellRemoved answers the pings of removed members with their removal: those members may not have learned it any other way.
func (h *host) tellRemoved() {
	if h.run.broken.RemovedUntold || h.guard == nil {
		return
	}
	for _, from := range h.cluster.up() {
		_, dials := from.routes[h.id]
		if dials && h.removed(from.id) && h.cluster.net.at(from, h.id) == h && h.run.Now() >= from.frozen {
			h.cluster.net.carry(h, from, []consensus.Message{{Kind: consensus.MsgRemoved, From: h.id, To: from.id}})
		}
	}
}

// forgetTold drops the operator's addresses that a committed configuration has outlived.
func (h *host) forgetTold() {
	machine := h.proc.Data.Machine
	config, id := machine.Config()
	h.learned.Outlived(id)
	for routed := range h.routes {
		if h.removed(routed) {
			inForce := h.proc.Node.Replica().InForce()
			h.route(&inForce)
			break
		}
	}
	left, gone := datadir.Outlived(&config, id, h.removed, h.hints)
	if len(gone) > 0 && datadir.WriteAddresses(h.options(), left) == nil { // else it is outlived once more later
		h.hints = left
	}
}

// learn asks other members for addresses while the process knows no leader. It draws nothing, so that all other events stay the
// same until a process learns something.
func (h *host) learn() {
	replica := h.proc.Node.Replica()
	led := replica.Leader() != consensus.NoMember
	if !h.learned.Look(h.run.Now(), h.extension(), led) || h.run.broken.AsksNobody {
		return
	}
	inForce := replica.InForce()
	known := inForce.Config.Including(inForce.Others)
	own := h.introduction()
	news := false
	for _, to := range h.dialled(&known, inForce.ID) {
		config, id := to.proc.Data.Machine.Config()
		introduced := to.introduction()
		said := autopilot.NewWhereabouts(&introduced, &config, id)
		news = h.learned.Take(&own, &known, inForce.ID, to.url, &said) || news
	}
	if news {
		h.run.struck("learned", fmt.Sprintf("%d, where others are", h.slot))
		h.route(&inForce)
	}
}

// introduction is the identity that a process gives to any caller.
func (h *host) introduction() identity.Claim {
	return identity.Claim{Cluster: clusterID, Member: h.id, Epoch: h.claim.Epoch}
}

// dialled returns the processes that answer at the addresses that a configuration, or an operator, has for other members.
func (h *host) dialled(config *consensus.Config, id consensus.ConfigID) (answer []*host) {
	for _, m := range h.known(config, id) {
		for _, url := range m.PeerURLs {
			p := h.at(url)
			if m.ID == h.id || p.Kind != places.PeerPort {
				continue
			}
			to := h.cluster.list[p.Machine]
			if to != h && to.alive && to.proc != nil && h.run.Now() >= to.frozen && !h.cluster.net.severed(h, to) {
				answer = append(answer, to)
			}
		}
	}
	return answer
}

// announce announces the address of this member to the cluster.
func (h *host) announce(config *consensus.Config) {
	urls := []string{h.advertised}
	news := autopilot.NewAddresses(pilotPorts{h}, discard).Announce(context.Background(), h.id, urls,
		h.announces.telling.Again())
	if news.Done {
		h.announces.telling.Told(config, h.id)
	}
	if !news.Tells {
		return
	}
	h.announces.asks = true
	life := h.life
	over := func(told bool) {
		if h.life != life {
			return
		}
		h.announces.asks = false
		if told {
			h.announces.telling.Told(config, h.id)
		}
	}
	if len(news.Ask) == 0 {
		h.moved(h.id, news.URLs, func(err error) { over(err == nil) })
		h.after(joins.Attempt, func() { over(false) }) // there may never be an answer
		return
	}
	end := h.run.routines.Go(func(wait routines.Wait) {
		told := false
		for _, id := range news.Ask {
			if !wait(func(resume func()) {
				h.cluster.net.tell(h, id, news.URLs, func(err error) {
					told = err == nil
					resume()
				})
				h.run.After(autopilot.MovePatience, resume)
			}) {
				return
			}
			if told {
				break
			}
		}
		over(told)
	})
	h.run.After(time.Duration(1+len(news.Ask))*autopilot.MovePatience, end)
}

// tell carries the report of a member's address to another member, which passes it to the leader.
func (n *network) tell(from *host, id consensus.MemberID, urls []string, answered func(error)) {
	to := n.at(from, id)
	if to == nil || to == from || to.id != id {
		n.run.After(0, func() { answered(errNotLeading) })
		return
	}
	n.callMoved(from, to, func(answer func(func())) {
		n.run.current = to
		to.movedAtLeader(from.id, urls, func(err error) { answer(func() { answered(err) }) })
	})
}

// movedAtLeader passes a member's report of its address to the leader, unless the report is about the leader itself.
func (h *host) movedAtLeader(id consensus.MemberID, urls []string, answered func(error)) {
	leader := h.cluster.net.at(h, h.proc.Node.Replica().Leader())
	switch {
	case leader == nil || h.pilot == nil:
		h.after(0, func() { answered(errNotLeading) })
	case leader == h, !autopilot.LeaderLooks(id, h.proc.Node.Replica().Leader()):
		h.moved(id, urls, answered)
	default:
		h.cluster.net.call(h, leader, func(answer func(func())) {
			leader.moved(id, urls, func(err error) { answer(func() { answered(err) }) })
		})
	}
}

// describe returns the view of the leader, whichever member it is. The view may be outdated when it arrives.
func (h *host) describe(done func(membership.View, error)) {
	leader := h.cluster.net.at(h, h.proc.Node.Replica().Leader())
	switch {
	case leader == nil:
		h.after(0, func() { done(membership.View{}, errNotLeading) })
	case leader == h:
		view, err := pilotPorts{h}.Describe(context.Background())
		h.after(h.cluster.net.delay(), func() { done(view, err) }) // confirmations take as long
	default:
		h.cluster.net.call(h, leader, func(answer func(func())) {
			view, err := pilotPorts{leader}.Describe(context.Background())
			answer(func() { done(view, err) })
		})
	}
}

// moved handles the report of a member's address at the member that confirms it.
func (h *host) moved(id consensus.MemberID, urls []string, answered func(error)) {
	if h.pilot == nil {
		return
	}
	leader := h.asLeader()
	end := h.run.routines.Go(func(wait routines.Wait) {
		if err, ok := leader.Moved(wait, id, urls); ok {
			answered(err)
		}
	})
	h.run.After(joins.Attempt, end)
}

// readTold reads the addresses that the operator gave. A member may run without them. Addresses that other members reported end
// with the process.
func (h *host) readTold() {
	h.learned = autopilot.Learned{}
	h.hints, _ = datadir.ReadAddresses(h.options())
}

// update asks the leader, which h is, for another peer URL of a member, as etcd's MemberUpdate does.
func (h *host) update(request consensus.ChangeRequest, done func(error)) {
	h.updateBy(request, membership.Lenient, done)
}

func (h *host) updateBy(request consensus.ChangeRequest, demand membership.Caution, done func(error)) {
	h.updateSeen(h, request, demand, done)
}

// updateSeen is updateBy where another member was asked, and confirms the URL.
func (h *host) updateSeen(by *host, request consensus.ChangeRequest, demand membership.Caution, done func(error)) {
	addresses := autopilot.NewAddresses(vantage{pilotPorts{h}, by}, discard)
	if err := addresses.Confirm(context.Background(), &request, demand); err != nil {
		h.after(0, func() { done(err) })
		return
	}
	h.change(request, done)
}
