package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/sim/changes"
	"github.com/quorate/quorate/internal/sim/places"
	"github.com/quorate/quorate/internal/transport"
)

// address is the address of a machine, and what its process knows of the addresses of others.
type address struct {
	url        string            // of its peer port
	home       string            // its first one
	left       []string          // its earlier ones, except the one in ordered
	obeyed     string            // its last one by an operator's order
	advertised string            // the flag of its process
	settled    time.Duration     // time of its last move; zero: it never moved
	ordered    string            // new URL by an operator's order: updated and acknowledged, and the machine has not moved yet
	mistyped   time.Duration     // since when an operator has a wrong URL for it; zero: none has
	lost       time.Duration     // since when it does not find another member; zero: it finds all
	hints      []datadir.Address // addresses that an operator gave
	learned    autopilot.Learned // addresses that others reported in this life of the process
	unheard    unheard
	routes     map[consensus.MemberID][]string // the URLs that it dials, by the configuration in force
	announces  announces
}

// unheard is a leader that a process does not find, though other members that it finds know its address.
type unheard struct {
	leader *host
	since  time.Duration
	life   int
}

// addressOf returns the first address of a machine.
func addressOf(url string) address { return address{url: url, home: url, advertised: url} }

// settle opens the peer port of a machine at its address.
func (c *cluster) settle(h *host) {
	c.places.Settle(h.url, places.Place{Kind: places.PeerPort, Machine: h.slot})
}

// at returns the place at a URL. A machine that never moved has other addresses beside its own: changes.Elsewhere. They stay
// its own when a newcomer gets its first address, which no configuration names since it was changed.
func (c *cluster) at(url string) places.Place {
	if id, ok := changes.AtElsewhere(url); ok && c.hosts[id] != nil {
		h := c.hosts[id]
		if h.url == h.home && !c.places.Diverted(h.home) {
			return places.Place{Kind: places.PeerPort, Machine: h.slot}
		}
		url = h.home
	}
	return c.places.At(url)
}

// loopback is a URL that leads every machine to itself.
const loopback = "http://localhost:2380"

// at returns the place at a URL, as seen from a machine.
func (h *host) at(url string) places.Place {
	if url == loopback {
		return places.Place{Kind: places.PeerPort, Machine: h.slot}
	}
	return h.cluster.at(url)
}

// leads reports whether one of some URLs leads to a machine from all other machines.
func (c *cluster) leads(urls []string, to *host) bool {
	return slices.ContainsFunc(urls, func(url string) bool {
		return c.at(url) == places.Place{Kind: places.PeerPort, Machine: to.slot}
	})
}

// route sets the members that a process dials, and from which it accepts streams.
func (h *host) route(inForce *raft.ConfigInForce) {
	config := inForce.Config.Including(slices.DeleteFunc(slices.Clone(inForce.Others), func(m consensus.Member) bool {
		return h.removed(m.ID)
	}))
	config.Members = h.learned.Beside(h.known(&config, inForce.ID), inForce.ID)
	h.routes = map[consensus.MemberID][]string{}
	for i := range config.Members {
		h.routes[config.Members[i].ID] = config.Members[i].PeerURLs
	}
	if h.guard != nil {
		h.guard.Configure(&config)
	}
}

// known returns the members of a configuration, with the addresses of that configuration and of an operator.
func (h *host) known(config *consensus.Config, id consensus.ConfigID) []consensus.Member {
	told := h.hints
	if h.run.broken.DeafToOperators {
		told = nil
	}
	return datadir.Dialled(config, id, told)
}

// at returns the machine that a process reaches at its addresses of a member: the first one that runs under that id, else any
// that listens there. A process answers a member that it does not dial over the stream that the member opened.
func (n *network) at(from *host, id consensus.MemberID) *host {
	if id == from.id {
		return from // whatever address the others have
	}
	urls, dials := from.routes[id]
	if !dials {
		return n.cluster.hosts[id]
	}
	var other *host
	for _, url := range urls {
		p := from.at(url)
		if p.Kind != places.PeerPort {
			continue
		}
		h := n.cluster.list[p.Machine]
		switch {
		case h.alive && h.id == id:
			return h
		case other == nil, h.alive && !other.alive:
			other = h
		}
	}
	return other
}

// reaches reports whether a process's messages to a member reach that member, as far as addresses matter.
func (n *network) reaches(from, to *host) bool {
	_, dials := from.routes[to.id]
	return dials && n.at(from, to.id) == to
}

// sight is what a process sees that looks for a member at a URL. It changes nothing, and draws nothing.
func (h *host) sight(id consensus.MemberID, url string) identity.Sight {
	p := h.at(url)
	var there places.Process
	if p.Kind == places.Ghost {
		there.Claim = &identity.Claim{Cluster: clusterID, Member: id, Empty: true}
	}
	if p.Kind == places.PeerPort || p.Kind == places.ClientPort {
		to := h.cluster.list[p.Machine]
		there.Reached = !h.cluster.net.severed(h, to) && h.run.Now() >= to.frozen
		switch {
		case to.gone:
		case to.founding != nil:
			own := to.founding.founder.Own
			there.Claim = &identity.Claim{Cluster: clusterID, Member: own.Member, Storage: own.Storage, Empty: true}
		case to.alive:
			there.Claim = &identity.Claim{Cluster: clusterID, Member: to.id, Epoch: to.claim.Epoch, Life: to.claim.Life,
				Storage: to.claim.Storage}
		}
	}
	return p.Sight(id, there)
}

// severed reports whether at least one direction between two machines is cut.
func (n *network) severed(a, b *host) bool {
	for _, pair := range [][2]int{{a.slot, b.slot}, {b.slot, a.slot}} {
		if l := n.links[pair]; l != nil && l.cuts > 0 {
			return true
		}
	}
	return false
}

// find looks for a member at a URL, as package transport does.
func (h *host) find(id consensus.MemberID, url string) (transport.Presence, error) {
	sight := h.sight(id, url)
	presence := sight.Judge(h.sought(id), h.run.broken.Rules)
	switch presence {
	case identity.NoPeerPort:
		return presence, &transport.NoPeerPortError{Text: "that is no peer port"}
	case identity.Unsure:
		return presence, transport.ErrUnreachable
	}
	return presence, nil
}

// sought is a member as a process looks for it: with the data directory that its configuration binds.
func (h *host) sought(id consensus.MemberID) identity.Sought {
	sought := identity.Sought{Cluster: clusterID, Member: id}
	if h.alive && h.guard != nil {
		known, _ := h.guard.Claims.Config().Member(id)
		sought.Storage = known.Storage
	}
	return sought
}

// judgeAddresses checks the configuration that a leader has just logged: it keeps an address at which each member was reached,
// and no two members are at one address.
func (h *host) judgeAddresses(was, now *consensus.Config) {
	owners := map[string]consensus.MemberID{}
	for i := range now.Members {
		m := &now.Members[i]
		for _, url := range m.PeerURLs {
			if other, taken := owners[url]; taken {
				h.run.suite.Report("address", fmt.Sprintf("members %v and %v are both believed at %s", other, m.ID, url))
			}
			owners[url] = m.ID
		}
		to := h.cluster.hosts[m.ID]
		before, known := was.Member(m.ID)
		if !known || to == nil || !to.alive || to.impostor != "" || to.justMoved() {
			continue
		}
		h.judgeOrder(to, &before, m)
		if before.Storage.IsZero() && !was.IsVoter(m.ID) {
			continue // it was never reached, and so may get any URL
		}
		if h.cluster.leads(before.DialURLs(), to) && !h.cluster.leads(m.DialURLs(), to) {
			h.run.suite.Report("address", fmt.Sprintf("leader %v drops %s, where member %v answers, for %s, where %v is", h.id,
				to.url, m.ID, strings.Join(m.DialURLs(), ","), h.cluster.at(m.PeerURLs[0]).Kind))
		}
	}
}

// judgeOrder checks that a leader keeps the URL that an operator gave a member that is still at its old address, which the
// configuration keeps as well.
func (h *host) judgeOrder(of *host, was, now *consensus.Member) {
	for _, row := range (pilotPorts{h}).Jobs() {
		if !row.State.Ended() && slices.ContainsFunc(row.Spec.Update, func(m consensus.Member) bool { return m.ID == of.id }) {
			of.ordered = "" // another operator gave it another URL
		}
	}
	url := of.ordered
	if url == "" || !h.cluster.leads(was.DialURLs(), of) {
		return
	}
	if slices.Contains(was.DialURLs(), url) && !slices.Contains(now.DialURLs(), url) {
		h.run.suite.Report("address", fmt.Sprintf("leader %v drops %s, where an operator wants member %v, for %v", h.id, url,
			of.id, now.DialURLs()))
	}
}

func (h *host) justMoved() bool { return h.settled > 0 && h.run.Now()-h.settled < addressStands }

// addressStands is how long a member must have its address before a change must not lose it: a process that was paused may
// propose a change that was right before.
const addressStands = 15 * time.Second

// divert makes the address of one machine lead to another one.
func (c *cluster) divert(h, to *host) {
	c.places.Divert(h.url, places.Place{Kind: places.PeerPort, Machine: to.slot})
}

// vantage is the ports of a leader, with the view of the network that another member has.
type vantage struct {
	pilotPorts
	by *host
}

func (v vantage) Self() consensus.MemberID { return v.by.id }

func (v vantage) Find(_ context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
	return v.by.find(id, url)
}
