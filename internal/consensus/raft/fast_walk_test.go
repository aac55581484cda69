package raft_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// walk is a random schedule in which single faults are rare and likely runs of them are not: a proposal to all voters, of
// which some messages are lost; an election by some quorum; entries that reach a few members. So it gets within some fifty
// moves where messages one by one would take thousands.
type walk struct {
	*cluster
	rng     *rand.Rand
	laws    *fastLaws
	profile profile
	weights [moves]int
	plan    []move
	drop    int // per cent of the messages of a move that do not arrive
	lose    int // per cent of the proposals that do not reach the leader
	late    int // per cent of what did not arrive that comes later
	lease   bool
	changes bool
	only    consensus.Protocol

	proposals []consensus.Proposal
	palette   []string
	past      []message // may arrive again, or late
	readID    uint64
	nextID    memberID
	moved     int
	delivered int
	elections int
}

// profile is what a walk is after.
type profile int

const (
	swarm   profile = iota // anything
	churn                  // successes, then elections with little replication
	skips                  // records without a leader's entry, entries passed over, retries
	stale                  // half-lost proposals of an old term meet those of a new one
	conf                   // changes between proposals
	rivals                 // competing changes
	pairs                  // what the leader has and what the voters hold differ
	drowsy                 // slow disks and falls
	reading                // reads
	profiles
)

// aim is what a walk is told, to find one fault; zero values leave the choice to the seed.
type aim struct {
	profile profile
	voters  []int
	only    consensus.Protocol
	adapt   func(o *raft.Options)
	shell   shellFaults
	steady  bool // no changes
}

func newWalk(seed uint64, a aim) *walk {
	rng := rand.New(rand.NewPCG(seed, 7))
	sizes := a.voters
	if sizes == nil {
		sizes = []int{1, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5, 5, 6, 7}
	}
	n := sizes[rng.IntN(len(sizes))]
	var voters, learners []memberID
	for id := range n {
		voters = append(voters, memberID(id+1))
	}
	x := &walk{rng: rng, nextID: memberID(n + 1), profile: a.profile, only: a.only}
	if x.profile == swarm && rng.IntN(3) > 0 {
		x.profile = profile(rng.IntN(int(profiles)))
	}
	if rng.IntN(6) == 0 || (x.profile >= conf && x.profile <= rivals) {
		learners = append(learners, x.nextID)
		x.nextID++
	}
	x.changes = !a.steady && (x.profile == conf || x.profile == rivals || rng.IntN(6) == 0)
	x.lease = rng.IntN(20) == 0
	careful := x.lease || rng.IntN(5) == 0
	bytes := []int{1, 100, 4000, 4000}[rng.IntN(4)]
	x.cluster = newCluster(voters, learners, func(o *raft.Options) {
		o.ElectionTicks, o.HeartbeatTicks, o.Seed = 5, 1, seed
		o.MaxMessageBytes, o.PreVote, o.CheckQuorum, o.LeaderLease = bytes, careful, careful, x.lease
		o.StrictReconfig = careful
		o.Fast.Footprint = footprintOf
		if a.adapt != nil {
			a.adapt(o)
		}
	})
	x.shell, x.lossy, x.infer = a.shell, rng.IntN(2) == 0, rng.IntN(3) > 0
	if x.only == consensus.ProtocolAuto {
		x.only = consensus.Protocol(rng.IntN(7)) // 6: each change draws its own
	}
	x.laws = newFastLaws(x.cluster)
	x.prepare()
	x.elect(1)
	x.tick(1)
	return x
}

func (x *walk) pct(p int) bool { return x.rng.IntN(100) < p }
func (x *walk) pick() *node    { return x.nodes[x.rng.IntN(len(x.nodes))] }
func (x *walk) some(n int) int { return x.rng.IntN(n) }
func (x *walk) alive() []*node {
	return slices.DeleteFunc(slices.Clone(x.nodes), func(n *node) bool { return n.replica == nil })
}
func (x *walk) broken() bool { return x.laws.broken != "" }
func leadsNow(n *node) bool  { return n.replica != nil && n.replica.Leader() == n.id }
func isFast(m *message) bool { return m.Kind >= consensus.MsgRecord && m.Kind <= consensus.MsgFast }
func isVote(m *message) bool {
	return m.Kind >= consensus.MsgPreVote && m.Kind <= consensus.MsgVoteReply
}
func isProposal(m *message) bool {
	return m.Kind == consensus.MsgPropose || m.Kind == consensus.MsgProposeReply
}

func isLog(m *message) bool {
	switch m.Kind {
	case consensus.MsgAppend, consensus.MsgAppendReply, consensus.MsgHeartbeat, consensus.MsgHeartbeatReply,
		consensus.MsgSnapshotOffer, consensus.MsgSnapshotReply, consensus.MsgAcknowledged, consensus.MsgOrphans:
		return true
	}
	return false
}

func isRead(m *message) bool {
	switch m.Kind {
	case consensus.MsgRead, consensus.MsgReadReply, consensus.MsgLogQuery, consensus.MsgLogQueryReply:
		return true
	}
	return false
}

// someLeader returns a member that believes to lead, mostly that of the latest term.
func (x *walk) someLeader() *node {
	var best *node
	for _, n := range x.nodes {
		if leadsNow(n) && (best == nil || (n.replica.Term() > best.replica.Term()) == x.pct(85)) {
			best = n
		}
	}
	return best
}

// hand gives one message to its receiver, who mostly does at once what follows from it.
func (x *walk) hand(m message) {
	x.delivered++
	x.deliver(m)
	if x.pct(30) {
		x.remember(m)
	}
	for _, n := range x.nodes {
		if n.id == m.To && x.pct(96) {
			x.drain(n)
		}
	}
}

func (x *walk) remember(m message) {
	if len(x.past) < 60 {
		x.past = append(x.past, m)
	} else {
		x.past[x.some(60)] = m
	}
}

func (x *walk) drain(n *node) {
	for i := 0; i < 4 && n.drain(); i++ {
	}
}

// take returns the messages under way that pass, and takes them from the net.
func (x *walk) take(pass func(m *message) bool) []message {
	var taken []message
	keep := x.net[:0:0]
	for i := range x.net {
		if pass(&x.net[i]) {
			taken = append(taken, x.net[i])
		} else {
			keep = append(keep, x.net[i])
		}
	}
	x.net = keep
	return taken
}

// exchange delivers what passes, and what that brings, for some rounds. Some of it is lost, or comes late.
func (x *walk) exchange(rounds, drop int, pass func(m *message) bool) {
	for range rounds {
		for _, n := range x.nodes {
			x.drain(n)
		}
		batch := x.take(pass)
		if len(batch) == 0 || x.broken() {
			return
		}
		if x.pct(40) {
			x.rng.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		}
		for _, m := range batch {
			switch {
			case !x.pct(drop):
				x.hand(m)
			case x.pct(x.late):
				x.remember(m)
			}
		}
	}
}

// feed lets a leader bring one member in line, which tells it, or does not.
func (x *walk) feed(leader, to *node, told bool) {
	leader.step(raft.Tick{})
	x.exchange(1+x.some(6), x.drop/3, func(m *message) bool {
		return isLog(m) && (m.From == leader.id && m.To == to.id || told && m.From == to.id && m.To == leader.id)
	})
}

// command draws what a client wants.
func (x *walk) command() string {
	return fmt.Sprintf("%s=%d", x.palette[x.some(len(x.palette))], len(x.proposals)+1)
}

// proposal returns a new one, or one that nobody was told the end of.
func (x *walk) proposal(again bool) consensus.Proposal {
	open := slices.DeleteFunc(slices.Clone(x.proposals), func(p consensus.Proposal) bool {
		_, done := x.laws.done[p.ID]
		return done
	})
	if len(open) > 0 && again {
		return open[x.some(len(open))]
	}
	p := proposalOf(uint64(len(x.proposals)+1), x.command())
	x.proposals = append(x.proposals, p)
	x.laws.invoke(p.ID)
	return p
}

// offer proposes to all voters at once; the leader does not hear of it with probability lose.
func (x *walk) offer(p consensus.Proposal, drop, lose int) {
	alive := x.alive()
	if len(alive) == 0 {
		return
	}
	via := alive[x.some(len(alive))]
	if leader := x.someLeader(); via == leader || via.replica.Leader() == consensus.NoMember {
		via = alive[x.some(len(alive))]
	}
	if x.infer {
		p.Proposer = via.id
	}
	via.step(raft.Propose{Proposals: []consensus.Proposal{p}, Fast: true})
	sent := x.take(func(m *message) bool {
		return (m.Kind == consensus.MsgRecord || m.Kind == consensus.MsgFastPropose) && m.Proposals[0].ID == p.ID
	})
	x.rng.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	for _, m := range sent {
		lost := drop
		if m.Kind == consensus.MsgFastPropose {
			lost = lose
		}
		switch {
		case !x.pct(lost):
			x.hand(m)
		case x.pct(x.late):
			x.remember(m)
		}
	}
	x.exchange(2, drop/3, func(m *message) bool { return isFast(m) && m.To == via.id })
	if via.replica != nil && via.replica.Leader() != via.id {
		x.exchange(1, drop, isProposal)
	}
}

// slow proposes to the leader alone.
func (x *walk) slow(p consensus.Proposal) {
	via := x.pick()
	if leader := x.someLeader(); leader != nil && x.pct(50) {
		via = leader
	}
	if x.infer {
		p.Proposer = via.id
	}
	via.step(raft.Propose{Proposals: []consensus.Proposal{p}})
	x.exchange(1, x.drop, isProposal)
}

// vote lets a member campaign among some of the others.
func (x *walk) vote() {
	c := x.pick()
	if c.replica == nil || leadsNow(c) {
		return
	}
	asked := map[memberID]bool{c.id: true}
	odds := []int{50, 70, 100}[x.some(3)]
	for _, n := range x.nodes {
		if !x.pct(odds) {
			continue
		}
		asked[n.id] = true
		if n.replica != nil && !x.lease {
			n.step(raft.Unreachable{Member: n.replica.Leader()})
		}
	}
	c.step(raft.Campaign{})
	x.exchange(5, x.drop/2, func(m *message) bool { return isVote(m) && asked[m.From] && asked[m.To] })
	if leadsNow(c) {
		x.elections++
	}
}

// ask reads from some member.
func (x *walk) ask() {
	n := x.pick()
	if n.replica == nil {
		return
	}
	x.readID++
	x.laws.ask(n, x.readID)
	n.step(raft.Read{IDs: []uint64{x.readID}, Spread: x.pct(80)})
	x.exchange(1+x.some(3), x.drop, func(m *message) bool {
		return isRead(m) && (m.From == n.id || m.To == n.id) && (m.Kind != consensus.MsgReadReply || x.pct(50))
	})
}

// change asks the leader for a change of one or two members.
func (x *walk) change() {
	leader := x.someLeader()
	if leader == nil || !x.changes {
		return
	}
	request := consensus.ChangeRequest{Protocol: x.only}
	if !x.only.Known() && x.only != consensus.ProtocolAuto {
		request.Protocol = consensus.Protocol(x.some(6))
	}
	if x.pct(5) {
		x.request(leader.id, consensus.ChangeRequest{Abort: true})
		return
	}
	for range []int{1, 1, 1, 2, 3}[x.some(5)] {
		kinds := []consensus.ChangeKind{
			consensus.ChangeAddVoter, consensus.ChangePromote, consensus.ChangePromote, consensus.ChangePromote,
			consensus.ChangeRemove, consensus.ChangeDemote, consensus.ChangeDemote,
		}
		step := consensus.ChangeStep{Kind: kinds[x.some(len(kinds))], Member: consensus.Member{ID: x.pick().id}}
		if step.Kind == consensus.ChangeAddVoter {
			if len(x.nodes) >= 8 {
				continue
			}
			step.Member = testMember(x.nextID)
			x.add(x.nextID, consensus.Config{})
			x.nextID++
		}
		if !slices.ContainsFunc(request.Steps, func(s consensus.ChangeStep) bool { return s.Member.ID == step.Member.ID }) {
			request.Steps = append(request.Steps, step)
		}
	}
	if len(request.Steps) > 0 {
		x.request(leader.id, request)
	}
}

// run makes moves until a law breaks, and ends all faults after them if asked to.
func (x *walk) run(moves int, heal bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("move %d: panic: %v", x.moved, p)
		}
	}()
	for ; x.moved < moves && !x.broken(); x.moved++ {
		x.act()
		if len(x.net) > 300 {
			x.net = slices.Clone(x.net[150:])
		}
	}
	if !x.broken() {
		x.laws.same()
	}
	if !x.broken() && heal {
		if err := x.heal(); err != nil {
			return err
		}
		x.laws.same()
	}
	if x.broken() {
		return fmt.Errorf("move %d: %s", x.moved, x.laws.broken)
	}
	return nil
}

// heal ends all faults: a leader is elected, every proposal comes to its end, and no member holds any for ever.
func (x *walk) heal() error {
	clear(x.blocked)
	x.net = nil
	for _, n := range x.nodes {
		n.slowDisk, n.holdApply, n.slowReply = false, false, false
		if n.replica == nil {
			n.start()
		}
		n.sync(len(n.pending))
		n.apply(len(n.toApply))
	}
	for range 40 {
		if x.tick(10); x.leader() != nil {
			break
		}
	}
	x.tick(20)
	for range 3 {
		leader := x.leader()
		if leader == nil {
			return fmt.Errorf("no leader after all faults ended")
		}
		leader.step(raft.Propose{Proposals: slices.Clone(x.proposals)})
		x.tick(30)
	}
	leader := x.leader()
	if leader == nil {
		return fmt.Errorf("the leader was lost without a fault")
	}
	for _, p := range x.proposals {
		if _, done := leader.store.keys.results[p.ID]; !done {
			return fmt.Errorf("%v never ends", p.ID)
		}
	}
	in := leader.replica.InForce()
	for _, id := range in.Config.IDs() {
		n := x.node(id)
		if s := n.replica.Status(); s.Applied != leader.replica.Status().LastIndex {
			return fmt.Errorf("member %v applied %d of %d", id, s.Applied, leader.replica.Status().LastIndex)
		}
		if held := n.replica.FastCounts().Held; held > 0 || len(n.disk.records) > 8 {
			return fmt.Errorf("member %v holds %d proposals, on disk %d", id, held, len(n.disk.records))
		}
	}
	return x.healthy(in.Config.IDs())
}

// healthy checks that, while all is well, whoever proposes something but the leader wins in one round trip.
func (x *walk) healthy(ids []memberID) error {
	for _, id := range ids {
		n := x.node(id)
		if leader := x.leader(); n == leader {
			continue
		}
		p := x.proposal(false)
		n.step(raft.Propose{Proposals: []consensus.Proposal{p}, Fast: true})
		x.settle()
		x.tick(1)
		if footprint := footprintOf(p.Payload); footprint.Barrier || !changes(p.Payload) {
			continue
		}
		if _, won := x.laws.wins[p.ID]; !won && !x.broken() {
			return fmt.Errorf("%v of member %v is not decided at once: %v", p.ID, id, n.replica.FastCounts())
		}
	}
	return nil
}

// replay tells a walk in words: the last part of it.
func replay(seed uint64, a aim, moves, lines int, heal bool) string {
	x := newWalk(seed, a)
	x.trace = &strings.Builder{}
	err := x.run(moves, heal)
	all := strings.Split(x.trace.String(), "\n")
	return fmt.Sprintf("%s\n=> %v", strings.Join(all[max(0, len(all)-lines):], "\n"), err)
}
