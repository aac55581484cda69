package raft_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Short names for types that these tests use.
type (
	memberID = consensus.MemberID
	message  = consensus.Message
	entry    = consensus.Entry
	position = consensus.Position
)

// cluster is a small cluster in one goroutine: replicas, their disks, their state machines and the network.
type cluster struct {
	opts    func(memberID) raft.Options
	nodes   []*node
	net     []message
	blocked map[[2]memberID]bool
	trace   *strings.Builder                // nil: silent
	check   func(n *node, out *raft.Output) // before the output is performed
	done    func(n *node, out *raft.Output) // after the outputs' entries are in the logs, before they are on disk
	nextSeq uint64                          // of proposals
	// lossy members lose, in a crash, the entries applied since the store was flushed, and the commit index, which is a hint.
	lossy bool
	infer bool      // proposers count the acknowledgements of their entries themselves
	shell rules.Set // dropped, of the rules that the shell keeps
}

// node is one member: the replica and the simplest shell that performs its outputs.
type node struct {
	c       *cluster
	id      memberID
	replica *raft.Replica // nil while crashed
	inbox   []raft.Input

	disk     disk
	pending  []raft.Output // persist requests, and the messages that wait for them
	slowDisk bool
	// slowInstall keeps snapshots from being installed.
	slowInstall bool
	installs    []raft.Input
	// slowStream keeps the snapshots that this member sends under way, unless the core stops them.
	slowStream bool
	streams    []raft.SnapshotSent
	streamed   int     // since the start of the test
	log        []entry // by the outputs, durable or not; log[0].Index = logBase+1
	logBase    consensus.Index
	logMeta    consensus.SnapshotMeta // of the snapshot at logBase

	store     store
	flushed   store // what a lossy store has after a crash
	holdApply bool
	toApply   []entry         // handed out, and not applied while holdApply
	handed    consensus.Index // handed out last
	off       bool            // for ever: its removal is settled
	received  map[position]store
	reads     []consensus.ReadIndex
	failed    []uint64
	refusals  []consensus.Refusal
	events    []raft.Event
	replies   []raft.Evaluation // of the fast path: durable, and not answered while slowReply
	slowReply bool
}

type disk struct {
	hard    consensus.HardState
	base    consensus.SnapshotMeta
	entries []entry
	records []consensus.Record
}

func testMember(id memberID) consensus.Member {
	return consensus.Member{ID: id, Name: fmt.Sprintf("m%d", id), PeerURLs: []string{fmt.Sprintf("http://m%d", id)}}
}

func testConfig(voters, learners []memberID) consensus.Config {
	c := consensus.Config{Voters: voters, Learners: learners}
	ids := slices.Concat(voters, learners)
	slices.Sort(ids)
	for _, id := range ids {
		c.Members = append(c.Members, testMember(id))
	}
	return c
}

func newCluster(voters, learners []memberID, adapt func(*raft.Options)) *cluster {
	c := &cluster{blocked: map[[2]memberID]bool{}}
	c.opts = func(id memberID) raft.Options {
		o := raft.Defaults(id)
		o.ElectionTicks, o.HeartbeatTicks = 10, 1
		if adapt != nil {
			adapt(&o)
		}
		if o.Fast.Footprint != nil {
			o.Fast.State = c.stateAt(id)
		}
		return o
	}
	config := testConfig(voters, learners)
	for _, m := range config.Members {
		c.add(m.ID, config)
	}
	return c
}

// add starts a new member; a zero config means that it joins.
func (c *cluster) add(id memberID, config consensus.Config) *node {
	n := &node{c: c, id: id, received: map[position]store{}}
	n.store.about.Config, n.store.keys.dropped = config, &c.shell
	if len(config.Voters) > 0 {
		n.store.position, n.store.about.ConfigID = position{Index: 1, Term: 1}, consensus.ConfigID{Index: 1, Term: 1}
	}
	n.disk.base = n.store.meta()
	n.flushed = n.store.clone()
	n.logMeta, n.logBase = n.disk.base, n.disk.base.Position.Index
	c.nodes = append(c.nodes, n)
	n.start()
	return n
}

// start starts the replica, also again after a crash.
func (n *node) start() {
	n.replica = n.restored()
	n.handed = n.store.position.Index
}

// restored returns a replica with the state of the disk now. If the store is the one of a snapshot and the log is not reset
// yet, the log begins after the store's position.
func (n *node) restored() *raft.Replica {
	kept, hard := &n.store, n.disk.hard
	if n.c.lossy {
		kept, hard.Commit = &n.flushed, 0
	}
	base := n.disk.base
	if kept.position.Index > base.Position.Index && n.storeAhead(kept) {
		base = kept.meta()
	}
	r, err := raft.New(n.c.opts(n.id), raft.Restored{
		Hard: hard, Base: base, Entries: n.disk.entries,
		Applied: kept.position.Index, Tombstones: kept.tombs, Revision: kept.keys.revision, Records: slices.Clone(n.disk.records),
	})
	if err != nil {
		panic(err)
	}
	return r
}

// crash loses everything that is not on disk: persist requests under way, and the messages that waited for them.
func (n *node) crash() {
	n.replica, n.inbox, n.pending, n.installs, n.toApply, n.streams = nil, nil, nil, nil, nil, nil
	n.replies = nil
	n.received = map[position]store{}
	if n.c.lossy {
		n.store = n.flushed.clone()
	}
	n.log, n.logMeta, n.logBase = slices.Clone(n.disk.entries), n.disk.base, n.disk.base.Position.Index
}

// flush makes the applied entries survive a crash.
func (n *node) flush() { n.flushed = n.store.clone() }

// compact drops entries, in memory and on disk, that the store has durably.
func (n *node) compact(index consensus.Index) {
	n.step(raft.Compact{Index: min(index, n.store.position.Index)})
	n.flush()
	base := n.replica.Base()
	if keep := int(base.Position.Index) - int(n.disk.base.Position.Index); keep > 0 && keep <= len(n.disk.entries) {
		n.disk.base, n.disk.entries = base, slices.Clone(n.disk.entries[keep:])
	}
}

// storeAhead reports whether the log on disk lacks entries that the store has applied.
func (n *node) storeAhead(kept *store) bool {
	for i := range n.disk.entries {
		if n.disk.entries[i].Position() == kept.position {
			return false
		}
	}
	return true
}

func (c *cluster) node(id memberID) *node {
	for _, n := range c.nodes {
		if n.id == id {
			return n
		}
	}
	panic(fmt.Sprintf("no member %v", id))
}

func (c *cluster) printf(format string, args ...any) {
	if c.trace != nil {
		fmt.Fprintf(c.trace, format+"\n", args...)
	}
}

// step gives inputs to the replica and performs its output.
func (n *node) step(inputs ...raft.Input) {
	if n.replica == nil {
		return
	}
	out := n.replica.Step(inputs...)
	if n.c.check != nil {
		n.c.check(n, &out)
	}
	n.trace(&out)
	n.events = append(n.events, out.Events...)
	n.reads = append(n.reads, out.Reads...)
	n.failed = append(n.failed, out.FailedReads...)
	n.refusals = append(n.refusals, out.Refusals...)
	if out.Reset != nil {
		n.log, n.logMeta, n.logBase = nil, *out.Reset, out.Reset.Position.Index
	}
	if len(out.Entries) > 0 {
		keep := out.Entries[0].Index - n.logBase - 1
		n.log = append(n.log[:keep:keep], out.Entries...)
	}
	if n.c.done != nil {
		n.c.done(n, &out)
	}
	n.c.net = append(n.c.net, out.Send...)
	if n.c.shell[rules.LeaderVolatile] {
		n.replies, out.Evaluate = append(n.replies, out.Evaluate...), nil
		n.reply()
	}
	if out.Seq != 0 || len(out.SendAfter) > 0 || len(out.Evaluate) > 0 {
		n.pending = append(n.pending, out)
	}
	if len(out.Apply) > 0 {
		n.toApply = append(n.toApply, out.Apply...)
		n.handed = n.toApply[len(n.toApply)-1].Index
	}
	if !n.holdApply {
		n.apply(len(n.toApply))
	}
	if out.Install != nil {
		s, ok := n.received[out.Install.Position]
		if ok {
			n.store, n.toApply, n.handed = s.clone(), nil, s.position.Index
			n.flush()
		}
		n.installs = append(n.installs, raft.SnapshotInstalled{Meta: *out.Install, Tombstones: s.tombs, Revision: s.keys.revision, Failed: !ok})
	}
	if !n.slowInstall {
		n.inbox = append(n.inbox, n.installs...)
		n.installs = nil
	}
	for _, request := range out.NeedSnapshot {
		to := n.c.node(request.To)
		ok := to.replica != nil && !n.c.blocked[[2]memberID{n.id, to.id}]
		if ok {
			to.received[n.store.position] = n.store.clone()
		}
		n.streams = append(n.streams, raft.SnapshotSent{To: to.id, Position: n.store.position, OK: ok})
		n.streamed++
	}
	for i := range n.streams {
		sent := &n.streams[i]
		sent.OK = sent.OK && !slices.Contains(out.StopSnapshot, sent.To)
	}
	n.streams = slices.DeleteFunc(n.streams, func(sent raft.SnapshotSent) bool {
		if !n.slowStream || !sent.OK {
			n.inbox = append(n.inbox, sent)
			return true
		}
		return false
	})
	if !n.slowDisk {
		n.sync(len(n.pending))
	}
}

// apply applies the oldest count entries that wait for it.
func (n *node) apply(count int) {
	count = min(count, len(n.toApply))
	if count == 0 {
		return
	}
	for i := range n.toApply[:count] {
		n.store.apply(&n.toApply[i])
	}
	n.toApply = slices.Delete(n.toApply, 0, count)
	n.inbox = append(n.inbox, raft.Applied{Index: n.store.position.Index, Revision: n.store.keys.revision})
}

// sync completes the oldest count persist requests.
func (n *node) sync(count int) {
	count = min(count, len(n.pending))
	forgot := false
	for _, out := range n.pending[:count] {
		if out.Hard != nil {
			n.disk.hard = *out.Hard
		}
		if out.Reset != nil {
			n.disk.base, n.disk.entries = *out.Reset, nil
		}
		if len(out.Entries) > 0 {
			keep := out.Entries[0].Index - n.disk.base.Position.Index - 1
			n.disk.entries = append(n.disk.entries[:keep:keep], out.Entries...)
		}
		forgot = n.disk.keep(&out, n.c.shell[rules.ForgetAtAppend]) || forgot
		n.replies = append(n.replies, out.Evaluate...)
		n.c.net = append(n.c.net, out.SendAfter...)
		if out.Seq != 0 {
			n.inbox = append(n.inbox, raft.Persisted{Seq: out.Seq})
		}
	}
	n.pending = slices.Delete(n.pending, 0, count)
	if !n.slowReply {
		n.reply()
	}
	if forgot && n.replica.Leader() != n.id {
		n.crash() // so that its memory is lost, too
		n.start()
	}
}

func (n *node) drain() bool {
	if n.replica == nil || len(n.inbox) == 0 {
		return false
	}
	inbox := n.inbox
	n.inbox = nil
	n.step(inbox...)
	return true
}

// settle delivers messages and completes requests until none is left.
func (c *cluster) settle() {
	for round := 0; ; round++ {
		if round > 10000 || len(c.net) > 50000 {
			panic("the cluster never settles")
		}
		moved := false
		for _, n := range c.nodes {
			moved = n.drain() || moved
		}
		if len(c.net) > 0 {
			net := c.net
			c.net = nil
			for i := range net {
				c.deliver(net[i])
			}
			continue
		}
		if !moved {
			return
		}
	}
}

// deliver gives one message to its receiver, through the encoding.
func (c *cluster) deliver(m message) {
	if c.blocked[[2]memberID{m.From, m.To}] {
		return
	}
	c.printf("  %s", describe(&m))
	decoded, rest, err := consensus.DecodeMessage(consensus.AppendMessage(nil, &m))
	if err != nil || len(rest) > 0 {
		panic(fmt.Sprintf("codec: %v, rest %d", err, len(rest)))
	}
	for _, n := range c.nodes {
		if n.id == m.To {
			n.step(raft.Receive{Message: decoded})
		}
	}
}

// deliverFirst delivers the oldest message, and completes the pending work of all members.
func (c *cluster) deliverFirst() {
	for _, n := range c.nodes {
		n.drain()
	}
	if len(c.net) > 0 {
		m := c.net[0]
		c.net = c.net[1:]
		c.deliver(m)
	}
}

// isolate cuts a member off, or joins it again.
func (c *cluster) isolate(id memberID, cut bool) {
	for _, n := range c.nodes {
		c.blocked[[2]memberID{id, n.id}] = cut
		c.blocked[[2]memberID{n.id, id}] = cut
	}
}

// cut drops messages between two members, both ways.
func (c *cluster) cut(a, b memberID) {
	c.blocked[[2]memberID{a, b}] = true
	c.blocked[[2]memberID{b, a}] = true
}

func (c *cluster) tick(count int, ids ...memberID) {
	for range count {
		for _, n := range c.nodes {
			if len(ids) == 0 || slices.Contains(ids, n.id) {
				n.step(raft.Tick{})
			}
		}
		c.settle()
	}
}

// elect makes id the leader by all means: first every member forgets its leader.
func (c *cluster) elect(id memberID) {
	for range 50 {
		n := c.node(id)
		if n.replica.Status().Role == raft.Leader {
			return
		}
		if leader := c.leader(); leader != nil {
			leader.step(raft.Transfer{To: id})
		} else {
			n.step(raft.Campaign{})
		}
		c.settle()
		if c.leader() == nil {
			c.tick(1, id)
		}
	}
	panic(fmt.Sprintf("member %v does not get elected", id))
}

// leader returns the leader of the highest term.
func (c *cluster) leader() *node {
	var leader *node
	for _, n := range c.nodes {
		if n.replica == nil || n.replica.Status().Role != raft.Leader {
			continue
		}
		if leader == nil || n.replica.Status().Term > leader.replica.Status().Term {
			leader = n
		}
	}
	return leader
}

func (c *cluster) propose(id memberID, commands ...string) {
	var proposals []consensus.Proposal
	for _, command := range commands {
		c.nextSeq++
		p := consensus.Proposal{
			ID:   consensus.ProposalID{Session: consensus.SessionID{Member: id, Number: 1}, Sequence: c.nextSeq},
			Kind: consensus.EntryCommand, Payload: []byte(command),
		}
		if c.infer {
			p.Proposer = id
		}
		proposals = append(proposals, p)
	}
	c.node(id).step(raft.Propose{Proposals: proposals})
}

func (c *cluster) change(id memberID, kind consensus.ChangeKind, member consensus.Member) {
	c.request(id, consensus.ChangeOne(kind, member))
}

func (c *cluster) request(id memberID, request consensus.ChangeRequest) {
	c.nextSeq++
	c.node(id).step(raft.ChangeConfig{Proposal: consensus.Proposal{
		ID:      consensus.ProposalID{Session: consensus.SessionID{Member: id, Number: 1}, Sequence: c.nextSeq},
		Payload: consensus.AppendChangeRequest(nil, &request),
	}})
}

// drawn draws a log: base | entries, each with its term.
func (n *node) drawn() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d |", n.logBase)
	for i := range n.log {
		fmt.Fprintf(&b, " %s", describeEntry(&n.log[i]))
	}
	return b.String()
}
