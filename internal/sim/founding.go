package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/places"
	"github.com/quorate/quorate/internal/storage/wal"
)

const (
	greetPause    = 200 * time.Millisecond
	greetPatience = time.Second
)

// newcomer is a process without data of a member of the first configuration: it asks the others about the founding, as package
// server does, and identity.Founder decides.
type newcomer struct {
	h       *host
	life    int
	founder identity.Founder
	stopped bool
	verdict identity.Verdict // the last one
}

// found begins a founding, or resumes one.
func (h *host) found() {
	record, err := h.foundingRecord()
	if err != nil {
		h.startFailed(err)
		return
	}
	h.disk.DieAfter(-1)
	h.cluster.lives++
	own := identity.Claim{Cluster: clusterID, Member: h.id, Storage: record.Storage,
		Address: h.advertised}
	n := &newcomer{h: h, founder: identity.Founder{
		Own: own, Members: h.base.Config.Members, Bindings: record.Bindings, Majority: h.run.plan.ByMajority,
		Excluded: record.Excluded, Rules: h.run.broken.Rules,
	}}
	h.founding = n
	if record.Bindings != nil {
		h.run.suite.Recorded(h.id, record.Storage, record.Bindings)
	}
	h.run.After(dice.Between(h.rng, 0, greetPause), n.ask)
}

// foundingRecord returns the founding record on the machine's disk before there is data: first of all, the storage id of the
// disk.
func (h *host) foundingRecord() (datadir.Founding, error) {
	options := h.options()
	record, err := datadir.ReadFounding(options)
	if err == nil && record.Storage.IsZero() {
		record.Storage = h.storageID()
		err = datadir.WriteFounding(options, record)
	}
	return record, err
}

// ask greets all other members at once and judges their answers.
func (n *newcomer) ask() {
	if n.stopped {
		return
	}
	var met []identity.Greeting
	waiting := len(n.founder.Members) - 1
	judged := false
	judge := func() {
		if !judged && !n.stopped {
			judged = true
			n.h.run.current = n.h
			n.act(n.founder.Decide(met))
		}
	}
	for i := range n.founder.Members {
		if id := n.founder.Members[i].ID; id != n.founder.Own.Member {
			n.h.cluster.net.greet(n.h, &n.founder.Own, n.founder.Members[i].PeerURLs[0], func(g identity.Greeting) {
				if n.founder.Hears(id, &g) && !judged {
					met = append(met, g)
				}
				if waiting--; waiting == 0 {
					judge()
				}
			})
		}
	}
	if waiting == 0 {
		judge()
	}
	n.h.run.After(greetPatience, judge)
}

// greet carries a greeting to a URL and the answer back.
func (n *network) greet(from *host, caller *identity.Claim, url string, answer func(identity.Greeting)) {
	p := from.at(url)
	if p.Kind != places.PeerPort {
		return
	}
	to := n.cluster.list[p.Machine]
	out, back := n.link(from.slot, to.slot), n.link(to.slot, from.slot)
	if out.cuts > 0 {
		return
	}
	n.run.After(n.delay(), func() {
		g, ok := to.greeted(caller)
		if !ok || out.cuts > 0 || back.cuts > 0 {
			return
		}
		n.run.After(n.delay(), func() { answer(g) })
	})
}

// greeted is a process's answer to a greeting.
func (h *host) greeted(caller *identity.Claim) (identity.Greeting, bool) {
	switch {
	case h.alive && h.guard != nil && h.guard.Knows() && h.run.Now() >= h.frozen:
		if h.epochs != nil {
			h.called(caller)
		}
		line := h.guard.Line(caller.Member, caller.Storage)
		return identity.Greeting{Claim: h.claim, Stage: identity.Founded, Bindings: line}, true
	case h.founding != nil:
		return h.founding.founder.Greeting(), true
	}
	return identity.Greeting{}, false
}

// act performs a decision.
func (n *newcomer) act(d identity.Decision) {
	h := n.h
	if n.verdict != d.Verdict {
		h.run.trace.Note(h.run.Now(), h.slot, diary.Founding, uint64(d.Verdict), uint64(len(d.Missing)), 0,
			func() string { return fmt.Sprintf("verdict %d %s", d.Verdict, d.Text) })
	}
	n.verdict = d.Verdict
	switch d.Verdict {
	case identity.Begin:
		n.begin(d.Bindings)
		return
	case identity.Record:
		if n.record(d.Bindings, false) {
			h.run.suite.Recorded(h.id, n.founder.Own.Storage, d.Bindings)
			n.ask()
			return
		}
	case identity.Lost, identity.Retired:
		if h.impostor == "" && h.run.counts.Recoveries == 0 { // a recovered member has dropped all others
			h.run.suite.Report("identity", fmt.Sprintf("member %v, whose disk nobody touched, was told: %s", h.id, d.Text))
		}
		h.ended = true
		if !n.founder.Excluded {
			n.record(n.founder.Bindings, true)
		}
	}
	h.run.After(greetPause, n.ask)
}

// record writes the new bindings to disk before another process learns of them. After a disk error it is tried again.
func (n *newcomer) record(bindings []identity.Bound, excluded bool) bool {
	record := datadir.Founding{Storage: n.founder.Own.Storage, Bindings: bindings, Excluded: excluded}
	if err := datadir.WriteFounding(n.h.options(), record); err != nil {
		return false
	}
	n.founder.Bindings, n.founder.Excluded = bindings, excluded
	return true
}

// begin makes the data and starts the member.
func (n *newcomer) begin(bindings []identity.Bound) {
	h := n.h
	h.run.suite.Began(h.id, n.founder.Own.Storage, bindings, len(n.founder.Members), h.run.plan.ByMajority)
	h.stopFounding()
	h.began = bindings
	own := wal.Identity{Cluster: clusterID, Member: h.id, Storage: n.founder.Own.Storage}
	err := datadir.Create(h.options(), own, n.founder.Config(bindings))
	if err == nil {
		err = datadir.RemoveFounding(h.options())
	}
	if err != nil {
		h.startFailed(err)
		return
	}
	h.start()
}

func (h *host) stopFounding() {
	if h.founding != nil {
		h.founding.stopped = true
		h.founding = nil
	}
}

// boundTo returns a first configuration in which each member is bound to its disk: the result of a founding without faults.
func boundTo(config consensus.Config) consensus.Config {
	config = config.Clone()
	for i := range config.Members {
		config.Members[i].Storage = storageOf(config.Members[i].ID, 0)
	}
	return config
}

// firstConfig is the first configuration as it is written to the host's disk.
func (h *host) firstConfig() consensus.Config {
	if !h.run.plan.Identity || len(h.base.Config.Members) == 0 {
		return h.base.Config
	}
	return boundTo(h.base.Config)
}

// waits reports whether the process on this machine must wait: it is not a member yet, or not any more.
func (h *host) waits() (bool, error) {
	if !h.run.plan.Identity || h.ended {
		return h.ended, nil
	}
	h.stopFounding()
	exists, err := datadir.Exists(h.options())
	switch {
	case err != nil:
		return false, err
	case exists:
		var lost *datadir.LostError
		err := datadir.CheckLost(h.options())
		h.ended = errors.As(err, &lost)
		if h.ended {
			return true, nil
		}
		return false, err
	case h.joiner != nil && h.impostor == "":
		h.beginJoin()
		return true, nil
	case len(h.base.Config.Members) == 0: // it has joined once, and joins again when the operator resets it
		h.ended = h.impostor != ""
		return h.ended, nil
	case h.run.plan.Founds || h.emptied > 0:
		h.found()
		return true, nil
	}
	return false, nil
}
