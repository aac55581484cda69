package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/sim/places"
	"github.com/quorate/quorate/internal/transport"
)

const (
	addressLook   = 2 * time.Second  // interval of the operators' checks
	lostLasts     = 10 * time.Second // after which, beyond elections, a member gets the addresses that it lacks
	mistypedLasts = 8 * time.Second  // after which a wrong URL is corrected
)

// addressFaults are wrong addresses, members that move, and the operators of both.
type addressFaults struct {
	run     *run
	cluster *cluster
	rng     *rand.Rand
	moves   int
	left    []string // addresses that members have left
	typed   []string // wrong URLs that newcomers were given
}

// elsewhere are addresses at which no member listens, with the places there.
var elsewhere = map[string]places.Kind{
	"http://10.3.0.1:2380": places.Program, "http://10.3.0.2:2380": places.Foreign, "http://10.3.0.3:2380": places.Mute,
	"http://10.3.0.4:2380": places.Nobody, "http://10.3.0.5:2380": places.Silence,
}

func newAddressFaults(r *run, c *cluster) *addressFaults {
	f := &addressFaults{run: r, cluster: c, rng: r.places}
	for url, kind := range elsewhere {
		c.places.Settle(url, places.Place{Kind: kind})
	}
	if r.plan.Identity {
		r.After(addressLook, f.look)
	}
	return f
}

// look is one round of the operators.
func (f *addressFaults) look() {
	f.run.After(addressLook, f.look)
	if f.run.refusing {
		return
	}
	f.correct()
	leader := f.cluster.leader()
	for _, h := range f.cluster.up() {
		h.unheard.judge(h, leader)
		where, lacks := f.lacks(h)
		switch {
		case h.impostor != "" || !lacks:
			h.lost = 0
		case h.lost == 0:
			h.lost = f.run.Now()
		case f.run.Now()-h.lost > lostLasts+4*f.patience():
			h.lost = 0
			f.tell(h, where)
		}
	}
}

// lacks returns the addresses of the members that a process dials, and whether it does not find one of them; or the addresses
// of all members, if it knows no leader, there is one, and the process does not know that leader as a member.
func (f *addressFaults) lacks(h *host) (where map[consensus.MemberID][]string, lacks bool) {
	leader := f.cluster.leader()
	where = map[consensus.MemberID][]string{h.id: {h.url}} // in the same command: its old address may be another's
	for _, other := range f.cluster.present() {
		if _, dials := h.routes[other.id]; dials && other != h {
			where[other.id] = []string{other.url}
			// A mistyped URL is corrected elsewhere, by the leader if there is one.
			lacks = lacks || (other.mistyped == 0 || leader == nil) && f.cluster.net.at(h, other.id) != other
		}
	}
	return where, lacks && f.run.plan.Addresses || f.addUnknown(h, leader, where)
}

// addUnknown adds the address of the leader, if a process knows no leader and does not dial that one.
func (f *addressFaults) addUnknown(h, leader *host, where map[consensus.MemberID][]string) bool {
	if leader == nil || h.guard == nil || h.guard.Joins() || h.proc.Node.Replica().Leader() != consensus.NoMember {
		return false
	}
	if _, dials := h.routes[leader.id]; dials {
		return false
	}
	where[leader.id] = []string{leader.url}
	return true
}

func (f *addressFaults) patience() time.Duration {
	return time.Duration(f.run.plan.Raft.ElectionTicks) * f.run.plan.Tick
}

// strikeMove restarts members at other addresses: one, some, or a majority at once, while others are down.
func (f *addressFaults) strikeMove() {
	config := f.run.suite.CommittedConfig()
	var all []*host
	for _, h := range f.cluster.members() {
		if config.IsVoter(h.id) && h.serves() && h.mistyped == 0 && !f.cluster.places.Diverted(h.url) {
			all = append(all, h)
		}
	}
	if len(all) < 2 || f.run.refusing {
		return
	}
	f.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	n := dice.Pick(f.rng, 1, 1, 2, len(all)/2+1, len(all))
	movers, rest := all[:min(n, len(all))], all[min(n, len(all)):]
	if dice.Chance(f.rng, 0.3) {
		f.order(movers, rest)
		return
	}
	for _, h := range movers {
		h.crash()
		f.left = append(f.left, h.url)
	}
	for i, h := range movers {
		f.move(h, movers[i+1:])
		h.startAfter(dice.Between(f.rng, 0, 5*time.Second))
	}
	for _, h := range rest {
		if dice.Chance(f.rng, 0.5) {
			h.crash()
			f.hasty(h)
			h.startAfter(dice.Between(f.rng, 5*time.Second, 20*time.Second))
		}
	}
}

// move makes a machine whose process does not run listen at another address: a new one, or one that a member has left or leaves
// now, as those that move next do.
func (f *addressFaults) move(h *host, next []*host) {
	url := f.fresh(h)
	taken := func(url string) bool { return f.taken(url, next) }
	if free := slices.DeleteFunc(slices.Clone(f.left), taken); len(free) > 0 && dice.Chance(f.rng, 0.3) {
		url = dice.Pick(f.rng, free...)
	}
	f.moveTo(h, url)
	h.advertised = h.url
}

// order is an operator who moves members in etcd's order: it first updates their URLs, to addresses at which no process listens
// yet, and then starts them there, some with their old flag. To move most of the members, it must force the updates.
func (f *addressFaults) order(movers, rest []*host) {
	leader := f.cluster.leader()
	if leader == nil || leader.pilot == nil || f.cluster.lost() != nil {
		return
	}
	demand := membership.Lenient
	if len(movers) > 1 {
		demand = membership.Forced
	}
	for i, h := range movers {
		url, begin := f.fresh(h), time.Duration(i)*time.Second
		if i == 0 && len(movers) == 1 && len(rest) > 0 && dice.Chance(f.rng, 0.5) {
			begin += f.typo(h, dice.Pick(f.rng, rest...))
		}
		f.run.After(begin, func() { f.orderOne(h, url, demand, true) })
	}
	f.run.After(dice.Between(f.rng, time.Duration(len(movers))*time.Second, 25*time.Second), func() { f.obey(movers) })
}

// typo first updates the URLs of a member to one at which another member will be started soon. It returns the time until the
// correction.
func (f *addressFaults) typo(h, other *host) time.Duration {
	url := f.fresh(other)
	f.orderOne(h, url, membership.Lenient, false)
	f.run.After(4*time.Second, func() {
		if other.alive && other.impostor == "" && !other.gone && !f.run.calm && !f.run.refusing && other.mistyped == 0 &&
			!f.cluster.places.Diverted(other.url) {
			other.crash()
			f.left = append(f.left, other.url)
			f.moveTo(other, url)
			other.advertised = other.url
			other.startAfter(dice.Between(f.rng, 0, time.Second))
		}
	})
	return 2 * time.Second
}

// orderOne updates the URLs of a member that stays at its address for now. With meant, the member is moved there later.
func (f *addressFaults) orderOne(h *host, url string, demand membership.Caution, meant bool) {
	leader := f.cluster.leader()
	if leader == nil || leader.pilot == nil || !h.serves() || f.run.refusing || f.run.calm || h.mistyped != 0 {
		return
	}
	f.run.struck("move", fmt.Sprintf("%d is to be at %s", h.slot, url))
	request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: h.id, PeerURLs: []string{url}})
	leader.updateBy(request, demand, func(err error) {
		if err == nil && !f.run.calm && meant {
			h.ordered = url
		}
	})
}

// obey moves the members whose update was acknowledged, all at once.
func (f *addressFaults) obey(movers []*host) {
	for _, h := range movers {
		if h.ordered == "" || h.gone || h.impostor != "" || f.run.calm || f.run.refusing || f.cluster.places.Diverted(h.url) {
			h.ordered = ""
			continue
		}
		if h.alive {
			h.crash()
		}
		f.left = append(f.left, h.url)
		f.moveTo(h, h.ordered)
		if dice.Chance(f.rng, 0.5) {
			h.advertised = h.url
		}
		h.startAfter(dice.Between(f.rng, 0, 5*time.Second))
	}
}

// fresh returns an address at which no machine was.
func (f *addressFaults) fresh(h *host) string {
	f.moves++
	return fmt.Sprintf("http://10.2.%d.%d:2380", f.moves, h.slot+1)
}

// moveTo makes a machine whose process does not run listen at an address.
func (f *addressFaults) moveTo(h *host, url string) {
	old := h.url
	if old != h.obeyed {
		h.left = append(h.left, old)
	}
	h.obeyed = ""
	if url == h.ordered {
		h.obeyed = url
	}
	h.url, h.ordered = url, ""
	if p := f.cluster.places.At(old); p.Kind == places.PeerPort && p.Machine == h.slot && h.url != old {
		f.cluster.places.Settle(old, f.leftover())
	}
	h.settled = f.run.Now()
	f.cluster.settle(h)
	f.run.struck("move", fmt.Sprintf("%d to %s, and %v is at %s", h.slot, h.url, f.cluster.places.At(old).Kind, old))
}

// taken reports whether a machine, except those that leave, listens at an address, or will again.
func (f *addressFaults) taken(url string, leave []*host) bool {
	return f.cluster.places.Diverted(url) || slices.ContainsFunc(f.cluster.list, func(h *host) bool {
		return h.url == url && !h.gone && !slices.Contains(leave, h)
	})
}

// leftover draws the place at an address that a member has left.
func (f *addressFaults) leftover() places.Place {
	p := places.Place{Kind: dice.Pick(f.rng, places.Nobody, places.Nobody, places.Nobody, places.Nobody, places.Silence,
		places.Mute, places.Program, places.Foreign, places.ClientPort)}
	switch {
	case p.Kind == places.ClientPort:
		p.Machine = f.rng.IntN(len(f.cluster.list))
	case p.Kind == places.Foreign && f.run.Now()/time.Microsecond%2 == 0: // another draw would change the runs of old seeds
		p.Kind = places.Ghost
	}
	return p
}

// hasty is an operator who would recover a member that is down, because no process answers at the addresses in its directory:
// the others have moved. The recovery must refuse, because this proves nothing.
func (f *addressFaults) hasty(h *host) {
	config := f.run.suite.CommittedConfig()
	rest := slices.DeleteFunc(f.cluster.members(), func(other *host) bool { return !config.IsVoter(other.id) })
	f.run.After(dice.Between(f.rng, 4*time.Second, 6*time.Second), func() {
		if h.alive || h.gone || h.impostor != "" || f.run.calm || f.run.refusing {
			return
		}
		s, err := recovery.Inspect(h.options())
		if err != nil {
			return
		}
		plan, err := s.Plan(nil)
		if err != nil {
			return
		}
		var lost []consensus.MemberID // the operator names no lost member
		found := s.FindVoters(context.Background(), h.finder(), lost)
		if f.run.broken.RefusedIsGone {
			for i := range found {
				if found[i].Presence == transport.Silent || found[i].Presence == transport.Another {
					lost = append(lost, found[i].ID)
				}
			}
		}
		if s.CheckVoters(found) == nil && s.CheckNames(plan, lost) == nil &&
			slices.ContainsFunc(rest, func(other *host) bool { return other.alive && other != h }) {
			f.run.suite.Report("recovery", fmt.Sprintf("member %v would be recovered, and others run where it does not look",
				h.id))
		}
	})
}

// finder looks for members from a machine whose process does not run.
func (h *host) finder() recovery.Finder {
	return func(_ context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
		return h.find(id, url)
	}
}

// tell is the operator of a member that has not found others for long, who knows the addresses of all machines: it stops the
// member, runs `quorate set-address`, and starts the member. It repeats that until it helps.
func (f *addressFaults) tell(h *host, where map[consensus.MemberID][]string) {
	h.disk = h.disk.Crash(disk.KeepAll, h.rng)
	h.down()
	h.startAfter(dice.Between(f.rng, 0, time.Second))
	s, err := recovery.Inspect(h.options())
	if err != nil || s.Removed() {
		return
	}
	told, err := s.Tell(where)
	if err == nil {
		_, err = told.Look(context.Background(), s, h.finder())
	}
	if err == nil {
		err = datadir.WriteAddresses(h.options(), told.All)
	}
	f.run.struck("set-address", fmt.Sprintf("%d, of %d: %v", h.slot, len(told.News), err))
}

// settled lets members find each other once the faults are over: each voter must reach each other voter.
func (f *addressFaults) settled(w *World) bool {
	if !f.run.plan.Addresses {
		return true
	}
	apart := func() string {
		config := f.run.suite.CommittedConfig()
		members := f.cluster.members()
		if len(members) == 0 {
			return "nobody runs"
		}
		for _, a := range members {
			known, _ := config.Member(a.id)
			switch {
			case !a.serves():
				return fmt.Sprintf("%v is down", a.id)
			case !f.cluster.leads(known.DialURLs(), a):
				return fmt.Sprintf("%v is at %s, and the configuration has it at %v", a.id, a.url, known.DialURLs())
			case len(members) > 1 && a.ordered == "" && a.mistyped == 0 && a.advertised == a.url && a.stale(&known):
				return fmt.Sprintf("%v is at %s, and the configuration has it at %v, and formerly at %v", a.id, a.url,
					known.PeerURLs, known.FormerURLs)
			}
			for _, b := range members {
				if a != b && config.IsVoter(a.id) && config.IsVoter(b.id) && !f.cluster.net.reaches(a, b) {
					return fmt.Sprintf("%v dials %v at %v, and it is at %s", a.id, b.id, a.routes[b.id], b.url)
				}
			}
		}
		return ""
	}
	if w.runUntil(f.run.Now()+addressesSettle, func() bool { return apart() == "" }) {
		return true
	}
	if why := apart(); !f.run.suite.Failed() && why != "" && !w.cluster.quorumGivenAway() {
		config := f.run.suite.CommittedConfig()
		var where []string
		for i := range config.Members {
			where = append(where, fmt.Sprintf("%v at %v", config.Members[i].ID, config.Members[i].DialURLs()))
		}
		f.run.suite.Report("address", fmt.Sprintf("members do not find each other: %s: the configuration has %s: %s", why,
			strings.Join(where, ", "), f.cluster.describe()))
	}
	return !f.run.suite.Failed()
}

// stale reports whether the configuration has an address of a machine that the machine has left, or other ones besides its
// present one. The address of an operator's order does not count, also if the machine was there too briefly to be found.
func (h *host) stale(known *consensus.Member) bool {
	if h.cluster.leads(known.PeerURLs, h) {
		return len(known.FormerURLs) > 0
	}
	return slices.ContainsFunc(known.PeerURLs, func(url string) bool { return slices.Contains(h.left, url) })
}

// addressesSettle is enough time for operators and members to correct addresses.
const addressesSettle = 3 * time.Minute
