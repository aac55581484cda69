package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/sim/changes"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/places"
)

// wrong draws a wrong URL for a member: a client port, the address of another member or another program, or one at which no
// process listens.
func (f *addressFaults) wrong(right string) string {
	var others []string
	for _, h := range f.cluster.present() {
		if h.url != right {
			others = append(others, h.url, places.ClientURL(h.url))
		}
	}
	urls := []string{places.ClientURL(right), places.ClientURL(right)}
	if len(others) > 0 {
		urls = append(urls, dice.Pick(f.rng, others...), dice.Pick(f.rng, others...))
	}
	return dice.Pick(f.rng, append(urls, fmt.Sprintf("http://10.3.0.%d:2380", 1+f.rng.IntN(len(elsewhere))))...)
}

// strikeMistype makes an operator, or the start of a member, use a wrong peer URL.
func (f *addressFaults) strikeMistype() {
	leader, up := f.cluster.leader(), f.cluster.up()
	if leader == nil || leader.pilot == nil || f.cluster.lost() != nil || f.run.refusing {
		return
	}
	h := up[f.rng.IntN(len(up))]
	h.ordered = ""
	url := f.wrong(h.url)
	switch f.rng.IntN(6) {
	case 0, 1:
		by := leader
		if dice.Chance(f.rng, 0.3) { // a URL that leads the member to itself; that member is asked
			by, url = h, loopback
		}
		f.mistyped("an update of %d by %s, where %v is", h, url)
		request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: h.id, PeerURLs: []string{url}})
		leader.updateSeen(by, request, membership.Lenient, func(error) {}) // it may be refused
	case 2:
		spec := membership.Spec{Update: []consensus.Member{{ID: h.id, PeerURLs: []string{url}}}}
		if dice.Chance(f.rng, 0.3) {
			spec.Force = "the operator is sure"
		}
		f.mistyped("a job that updates %d by %s, where %v is", h, url)
		f.start(leader, spec)
	case 3: // its own start
		if h.mistyped == 0 && h.advertised == h.url {
			f.mistyped("%d starts as %s, where %v is", h, url)
			h.crash()
			h.advertised, h.mistyped = url, f.run.Now()
			h.startAfter(dice.Between(f.rng, 0, 2*time.Second))
		}
	case 4:
		if f.first(url) {
			f.mistypeNewcomer(leader, h, url)
		}
	case 5: // a process that joins
		if !f.first(url) {
			break
		}
		if n := f.machine(); n != nil {
			n.joiner = &joiner{request: autopilot.JoinRequest{
				Name: describeMember(n.slot).Name, PeerURLs: []string{url}, Learner: dice.Chance(f.rng, 0.5),
				Level: n.knowsLevel(),
			}}
			n.advertised, n.mistyped = url, f.run.Now()
			f.mistyped("%d joins as %s, where %v is", n, url)
			n.startAfter(dice.Between(f.rng, 0, 2*time.Second))
		}
	}
}

// first reports whether no newcomer was given this URL before, and no process listens there whose data directory the other
// members do not know yet. Two processes at one URL are one member with two data directories, of which the other members bind
// one: the checkers know a member by its id alone. Nemesis join has such pairs.
func (f *addressFaults) first(url string) bool {
	config := f.run.suite.CommittedConfig()
	unbound := func(h *host) bool {
		m, ok := config.Member(h.id)
		return h.url == url && (!ok || m.Storage != h.storageID())
	}
	if slices.Contains(f.typed, url) || slices.ContainsFunc(f.cluster.list, unbound) {
		return false
	}
	f.typed = append(f.typed, url)
	return true
}

func (f *addressFaults) mistyped(format string, h *host, url string) {
	f.run.struck("mistype", fmt.Sprintf(format, h.slot, url, f.cluster.at(url).Kind))
}

// start requests a job from a leader, which may refuse it.
func (f *addressFaults) start(leader *host, spec membership.Spec) {
	id := membership.JobID(f.rng.Uint64()>>1 | 1)
	leader.proc.Clients.Read(func() { _, _ = leader.pilot.requests.Start(context.Background(), id, &spec) })
}

// mistypeNewcomer requests a job that adds a member, or replaces one, at a wrong URL.
func (f *addressFaults) mistypeNewcomer(leader, old *host, url string) {
	n := f.newcomer()
	if n == nil {
		return
	}
	added := membership.Newcomer{
		ID: n.id, Name: changes.Describe(n.id).Name, PeerURLs: []string{url}, Learner: dice.Chance(f.rng, 0.5),
	}
	spec := membership.Spec{Add: []membership.Newcomer{added}}
	if dice.Chance(f.rng, 0.4) {
		spec.Kind, spec.Remove, spec.Add[0].Learner = membership.KindReplace, []consensus.MemberID{old.id}, false
	}
	f.mistyped("a job for %d by %s, where %v is", n, url)
	f.start(leader, spec)
}

func (f *addressFaults) machine() *host {
	if len(f.cluster.list) >= maxHosts {
		return nil
	}
	return f.cluster.addMachine(f.rng.Uint64(), consensus.NoMember, consensus.SnapshotMeta{})
}

// newcomer adds a machine that starts about now, and whose address an operator mistypes.
func (f *addressFaults) newcomer() *host {
	if len(f.cluster.list) >= maxHosts {
		return nil
	}
	h := f.cluster.addHost(f.rng.Uint64(), consensus.MemberID(len(f.cluster.list)+1), consensus.SnapshotMeta{})
	h.mistyped = f.run.Now()
	h.startAfter(dice.Between(f.rng, 0, 2*time.Second))
	return h
}

// correct is the operators' check, after a while, of the URLs that they gave: a process is started again with its right URL,
// and the leader gets the right URL of a newcomer that no member reaches.
func (f *addressFaults) correct() {
	leader := f.cluster.leader()
	for _, h := range f.cluster.list {
		if h.mistyped == 0 || f.run.Now()-h.mistyped < mistypedLasts || h.gone || h.impostor != "" {
			continue
		}
		if h.advertised != h.url {
			h.advertised = h.url
			if h.alive {
				h.crash()
				h.startAfter(dice.Between(f.rng, 0, time.Second))
			}
		}
		if leader == nil || leader.pilot == nil {
			continue
		}
		config, _ := leader.proc.Data.Machine.Config()
		known, ok := config.Member(h.id)
		switch {
		case ok && f.cluster.leads(known.DialURLs(), h):
			h.mistyped = 0
		case ok && h.alive:
			request := consensus.ChangeOne(consensus.ChangeUpdate, consensus.Member{ID: h.id, PeerURLs: []string{h.url}})
			leader.update(request, func(error) {}) // it is tried again
		}
	}
}
