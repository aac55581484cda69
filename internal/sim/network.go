package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/plan"
)

// link is one direction between two members.
type link struct {
	cuts             int // number of nemeses that hold it cut
	ordered, express stream
	pipe             *pipe // nil: the size of a message does not matter
}

// network carries messages between hosts, in order per link unless the weather reorders.
type network struct {
	run     *run
	cluster *cluster
	rng     *rand.Rand
	weather plan.Weather
	links   map[[2]int]*link
}

func (n *network) link(from, to int) *link {
	l := n.links[[2]int{from, to}]
	if l == nil {
		l = &link{}
		n.links[[2]int{from, to}] = l
	}
	return l
}

// send sends messages of one host. Successive messages to one receiver travel together, as they would on a stream.
func (n *network) send(from *host, messages []consensus.Message) {
	from.suite.Sent(messages)
	n.run.actions.Sent(messages)
	for len(messages) > 0 {
		run := 1
		for run < len(messages) && messages[run].To == messages[0].To {
			run++
		}
		id := messages[0].To
		to := n.at(from, id)
		switch _, dials := from.routes[id]; {
		case to != nil && to != from:
			n.watch(from, to, messages[:run])
			n.carry(from, to, messages[:run])
		case to == nil && !dials:
			from.proc.DeliverToClients(messages[:run])
		case to == nil: // no member is where it dials
			n.run.counts.Dropped += uint64(run)
		}
		messages = messages[run:]
	}
}

// watch reports sent messages to the sent-once law, if both ends are members. A message to a machine that is another member's,
// because an address is wrong, is lost from the start: it travels by a connection of its own, and the leader's later messages
// to the member itself do not overtake it.
func (n *network) watch(from, to *host, messages []consensus.Message) {
	if from.suite != n.run.suite || to.suite != n.run.suite {
		return
	}
	for i := range messages {
		n.run.suite.SentOnce.Leaves(n.run.suite, &messages[i])
		if to.id != messages[i].To {
			n.run.suite.SentOnce.Lost(&messages[i])
		}
	}
}

func (n *network) carry(from, to *host, messages []consensus.Message) {
	l := n.link(from.slot, to.slot)
	inputs := make([]raft.Input, len(messages))
	for i := range messages {
		inputs[i] = raft.Receive{Message: messages[i]}
	}
	if l.cuts > 0 || dice.Chance(n.rng, n.weather.Loss) || !n.shake(from, to) {
		n.lose(inputs...)
		return
	}
	for i := range messages {
		inputs[i] = raft.Receive{Message: n.copy(&messages[i])}
	}
	n.put(from, to, l, inputs)
	if dice.Chance(n.rng, n.weather.Dup) {
		n.run.counts.Duplicated += uint64(len(messages))
		n.put(from, to, l, inputs)
	}
}

// put sends messages over a link.
func (n *network) put(from, to *host, l *link, inputs []raft.Input) {
	p := &parcel{from: from, to: to, link: l, stream: &l.ordered, inputs: inputs, life: to.life, sent: from.credentials}
	if l.pipe != nil {
		l.pipe.put(p)
		return
	}
	n.travel(p)
}

// sameAppend reports whether an input is this message, as far as entries are concerned.
func sameAppend(m *consensus.Message, input raft.Input) bool {
	o := input.(raft.Receive).Message
	return m.Kind == o.Kind && m.Term == o.Term && m.Round == o.Round && len(m.Entries) == len(o.Entries) &&
		(len(m.Entries) == 0 || m.Entries[0].Index == o.Entries[0].Index)
}

// lose counts messages that do not arrive.
func (n *network) lose(inputs ...raft.Input) {
	n.run.counts.Dropped += uint64(len(inputs))
	for i := range inputs {
		m := inputs[i].(raft.Receive).Message
		n.run.suite.SentOnce.Lost(&m)
	}
}

// copy sends some messages through the real encoding, so that nothing is shared that a wire would not share.
func (n *network) copy(m *consensus.Message) consensus.Message {
	if !dice.Chance(n.rng, n.weather.CodecChecks) {
		return *m
	}
	decoded, rest, err := consensus.DecodeMessage(consensus.AppendMessage(nil, m))
	invariant.True(err == nil && len(rest) == 0, "message %+v does not survive its encoding: %v", m, err)
	return decoded
}

func (n *network) delay() time.Duration {
	d := n.weather.Base + dice.Exponential(n.rng, n.weather.Jitter)
	if dice.Chance(n.rng, n.weather.Spike) {
		d += dice.Between(n.rng, 0, n.weather.SpikeUpTo)
	}
	return d
}

// travel schedules the arrival of a parcel, after those before it on its stream unless the weather reorders.
func (n *network) travel(p *parcel) {
	at := n.run.Now() + n.delay()
	if !dice.Chance(n.rng, n.weather.Reorder) {
		at = max(at, p.stream.last)
		p.stream.last = at
	} else {
		var term consensus.Term
		for i := range p.inputs {
			term = max(term, p.inputs[i].(raft.Receive).Message.Term)
		}
		n.run.suite.SentOnce.Overtaken(p.from.id, p.to.id, term)
	}
	n.run.After(at-n.run.Now(), func() { n.arrive(p) })
}

func (n *network) arrive(p *parcel) {
	to, inputs := p.to, p.inputs
	// A cut stream loses the messages under way; so does a stream whose receiver restarted.
	if p.link.cuts > 0 || !to.alive || to.life != p.life {
		n.lose(inputs...)
		return
	}
	inputs = n.admit(p.from, &p.sent, to, inputs)
	kept := inputs
	if to.suite != n.run.suite {
		kept = nil // a message to another cluster does not arrive in this one
	}
	for i, k := 0, 0; i < len(p.inputs) && len(kept) < len(p.inputs); i++ { // admit keeps the order
		m := p.inputs[i].(raft.Receive).Message
		if k < len(kept) && sameAppend(&m, kept[k]) {
			k++
		} else {
			n.run.suite.SentOnce.Lost(&m)
		}
	}
	if len(inputs) == 0 {
		return
	}
	n.run.counts.Messages += uint64(len(inputs))
	first := inputs[0].(raft.Receive).Message
	n.run.trace.Note(n.run.Now(), to.slot, diary.Deliver, uint64(p.from.slot), uint64(first.Kind), uint64(first.Term),
		func() string { return describe(&first, len(inputs)) })
	to.proc.Put(inputs...)
}

func describe(m *consensus.Message, n int) string {
	return fmt.Sprintf("mark=%v commit=%d round=%d entries=%d reject=%t more=%d",
		m.Match, m.Commit, m.Round, len(m.Entries), m.Reject, n-1)
}

// ping goes from a member to another one and back. A paused member does not answer.
func (n *network) ping(from *host, to consensus.MemberID, answered func()) {
	if peer := n.at(from, to); peer != nil && peer.id == to {
		n.call(from, peer, func(answer func(func())) {
			if n.run.Now() >= peer.frozen {
				answer(answered)
			}
		})
	}
}

// call carries a small request of one member to another and its answer, or neither.
func (n *network) call(from, to *host, ask func(answer func(func()))) {
	n.carryCall(from, to, false, ask)
}

// callMoved is a call in which a member reports its address.
func (n *network) callMoved(from, to *host, ask func(answer func(func()))) {
	n.carryCall(from, to, true, ask)
}

func (n *network) carryCall(from, to *host, moved bool, ask func(answer func(func()))) {
	out, back := n.link(from.slot, to.slot), n.link(to.slot, from.slot)
	if out.cuts > 0 || dice.Chance(n.rng, n.weather.Loss) {
		return
	}
	toLife, fromLife := to.life, from.life
	n.run.After(n.delay(), func() {
		if out.cuts > 0 || !to.alive || to.life != toLife || !from.alive || from.life != fromLife ||
			!n.meet(from, to, moved) {
			return
		}
		ask(func(deliver func()) {
			if back.cuts > 0 {
				return
			}
			n.run.After(n.delay(), func() {
				if back.cuts == 0 && from.alive && from.life == fromLife {
					deliver()
				}
			})
		})
	})
}

// cut adds a cut to the links from one set of hosts to another; heal removes one.
func (n *network) cut(from, to []*host, notice bool) {
	n.hold(from, to, 1)
	if !notice {
		return
	}
	for _, a := range from {
		for _, b := range to {
			n.notice(a, b)
		}
	}
}

func (n *network) heal(from, to []*host) { n.hold(from, to, -1) }

// healAll makes all links whole and wide. The messages that wait for narrow links arrive in their order.
func (n *network) healAll() {
	ends := slices.SortedFunc(maps.Keys(n.links), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, pair := range ends {
		l := n.links[pair]
		l.cuts = 0
		n.narrow(l, 0, 0)
	}
}

func (n *network) hold(from, to []*host, by int) {
	if n.run.calm {
		return // all links were healed at once, and this nemesis undoes its cut late
	}
	for _, a := range from {
		for _, b := range to {
			if a != b {
				l := n.link(a.slot, b.slot)
				if l.cuts += by; l.cuts > 0 && l.pipe != nil {
					l.pipe.lose()
				}
			}
		}
	}
}

// notice notifies a host, a little later and not always, that its connection to another host broke.
func (n *network) notice(a, b *host) {
	if a == b || dice.Chance(n.rng, n.weather.NoticeLoss) {
		return
	}
	life := a.life
	n.run.After(dice.Between(n.rng, 100*time.Microsecond, 20*time.Millisecond), func() {
		if a.alive && a.life == life {
			a.proc.Put(raft.Unreachable{Member: b.id})
		}
	})
}

// narrow sets the rate of a link, in bytes a second; zero removes the limit, and waiting messages arrive.
func (n *network) narrow(l *link, rate, crowded int) {
	p := l.pipe
	switch {
	case p == nil && rate == 0:
		return
	case p == nil:
		p = &pipe{
			run: n.run, travel: n.travel, drop: n.lose, ordered: &l.ordered, express: &l.express, rate: 1, since: n.run.Now(),
		}
	}
	p.work()
	if rate > 0 {
		l.pipe, p.rate, p.crowded = p, rate, crowded
		p.wakeNext()
		return
	}
	l.pipe = nil
	p.flush()
}

// broken drops the messages that wait for the links from and to a host whose process has ended.
func (n *network) broken(h *host) {
	for _, other := range n.cluster.list {
		for _, pair := range [][2]int{{h.slot, other.slot}, {other.slot, h.slot}} {
			if l := n.links[pair]; l != nil && l.pipe != nil {
				l.pipe.lose()
			}
		}
	}
}
