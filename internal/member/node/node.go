package node

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/groupcommit"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/member/proposals"
)

// Ports are what a Node needs done. The functions must not call back into the Node before they return; what they
// begin is answered later: Persist by Step(raft.Persisted), Apply by Resolve and Step(raft.Applied), Install by Restored and
// Step(raft.SnapshotInstalled), SendSnapshot by Step(raft.SnapshotSent).
type Ports struct {
	Send         func(messages []consensus.Message)
	Persist      func(request Persist)
	Apply        func(entries []consensus.Entry)
	Install      func(meta consensus.SnapshotMeta)
	SendSnapshot func(to consensus.MemberID)
	// StopSnapshot, if set, ends the streaming to a member: it has become useless.
	StopSnapshot func(to consensus.MemberID)
	Configure    func(inForce raft.ConfigInForce)
	Observe      func(events []raft.Event)
	// Distance is the round trip to another member, false while it is not known. By it the node decides when to count
	// acknowledgements of its proposals itself, and when to offer them to all voters (package offers).
	Distance func(to consensus.MemberID) (time.Duration, bool)
	// Taken, if set, is told of the inputs that the core takes, in order, once they have waited for their time.
	Taken func(inputs []raft.Input)
	// Decided, if set, is told of the proposals of this member that the fast path decided, before their callers are.
	Decided func(decided []tally.Decision)
}

// Persist asks for one durable write. After leaves once it, and every request before it, is on disk.
type Persist struct {
	Seq   uint64 // zero: nothing to write, only After to be sent in order
	Batch consensus.Batch
	After []consensus.Message
	// Evaluate is to be answered then, too: Answer says how.
	Evaluate []raft.Evaluation
	Asked    time.Time // by the member's clock; zero: not known
	// Base, if set, lets the log on disk forget what lies at or before it, after the write.
	Base *consensus.SnapshotMeta
}

// PersistOf returns the durable write that an output asks for, false if it asks for none.
func PersistOf(out *raft.Output) (request Persist, asks bool) {
	if out.Seq == 0 && len(out.SendAfter) == 0 && len(out.Evaluate) == 0 {
		return Persist{}, false
	}
	return Persist{
		Seq: out.Seq,
		Batch: consensus.Batch{
			Hard: out.Hard, Entries: out.Entries, Reset: out.Reset, Witness: consensus.WitnessRecords(out.Records),
		},
		After:    out.SendAfter,
		Evaluate: out.Evaluate,
	}, true
}

// Options say which member the node is, and how patient.
type Options struct {
	Raft         raft.Options
	FirstSession uint64 // greater than every session number of this member before
	OpenBytes    int    // of proposals that wait for their results; zero: the default of package proposals
	RetryTicks   int    // a question or proposal without answer for so long is repeated
	FastPath     offers.Setting
	OfferFaults  offers.Faults // tests only
	// CommitDelay is how long the leader waits at most for more proposals to write together, from one batch to the next.
	CommitDelay time.Duration
}

// Node is the body of a member's loop: it owns the core, the proposals and the reads of one member.
type Node struct {
	replica   *raft.Replica
	ports     Ports
	proposals *proposals.Table
	reads     *reads
	scheduler *offers.Scheduler
	due       []consensus.Message // scratch
	options   Options
	ticks     uint64
	counts    bool // it counts which voters hold what it proposes; its reads ask all voters, too
	fast      bool // it offers what it proposes to all voters
	leader    consensus.MemberID
	term      consensus.Term
	inputs    []raft.Input
	gathering gathering
	waits     waits
	now       time.Time // of this step
}

// paceMessages is how many full appends of what is proposed here may always be on their way: so many that a link is not idle
// between an append and its acknowledgement.
const paceMessages = 8

// questionBits make room for the questions of one life, which FirstSession counts: more of them than are ever asked.
const questionBits = 8

// New restores a node from what its disk said.
func New(options Options, restored raft.Restored, ports Ports) (*Node, error) {
	replica, err := raft.New(options.Raft, restored)
	if err != nil {
		return nil, err
	}
	n := &Node{
		replica:   replica,
		ports:     ports,
		options:   options,
		proposals: proposals.New(options.Raft.ID, options.FirstSession, options.OpenBytes),
		scheduler: offers.New(options.FastPath, options.OfferFaults),
		gathering: gathering{gate: groupcommit.New(options.CommitDelay)},
		reads:     &reads{applied: restored.Applied, lastID: options.FirstSession << questionBits},
	}
	n.proposals.SetPace(proposals.Pace{
		Least: paceMessages * options.Raft.MaxMessageBytes, Patience: uint64(options.Raft.ElectionTicks+1) / 2,
	})
	if inForce := replica.InForce(); len(inForce.Config.Members) > 0 {
		ports.Configure(inForce)
	}
	return n, nil
}

// Propose queues a command; it leaves with the next Step. done is told once, by the goroutine that applies.
func (n *Node) Propose(command *kv.Command, done proposals.Completion) (abandon func(), err error) {
	q, err := n.proposals.Add(consensus.EntryCommand, command.Append(nil), done)
	if err != nil {
		return nil, err
	}
	return func() { n.proposals.Abandon(q) }, nil
}

// ChangeConfig queues a configuration change. It is never repeated by itself: its refusal by a second leader could
// not be told from success under the first.
func (n *Node) ChangeConfig(request consensus.ChangeRequest, done proposals.Completion) (abandon func(), err error) {
	payload := consensus.AppendChangeRequest(nil, &request)
	q, err := n.proposals.Add(consensus.EntryConfig, payload, done)
	if err != nil {
		return nil, err
	}
	return func() { n.proposals.Abandon(q) }, nil
}

// Read calls done once the state applied here shows everything acknowledged before the call.
func (n *Node) Read(done func()) { n.AddReader(&Reader{To: told(done)}) }

// Step feeds inputs, and what waits to be proposed and asked, to the core and performs what comes out. now is what the
// member's clock shows; it decides nothing that safety depends on.
func (n *Node) Step(now time.Time, inputs ...raft.Input) {
	ticked := false
	n.now = now
	n.inputs = n.inputs[:0]
	for _, input := range inputs {
		switch input := input.(type) {
		case raft.Tick:
			ticked = true
			n.tick()
		case raft.Receive:
			if n.scheduler.Delay(now, &input.Message) {
				continue
			}
			if n.gathers() && n.gathering.take(input, len(input.Message.Proposals)) {
				continue
			}
		}
		n.inputs = append(n.inputs, input)
	}
	n.due = n.scheduler.Take(n.due[:0], now)
	for i := range n.due {
		n.inputs = append(n.inputs, raft.Receive{Message: n.due[i]})
	}
	clear(n.due)
	proposes := n.gather(now)
	if ticked {
		n.decideFastPath(now)
	}
	n.collect(proposes)
	if n.ports.Taken != nil {
		n.ports.Taken(n.inputs)
	}
	first := n.replica.Base().Position.Index
	out := n.replica.Step(n.inputs...)
	clear(n.inputs)
	n.scheduler.Stamp(now, out.Send)
	n.perform(&out)
	if base := n.replica.Base(); base.Position.Index > first && out.Reset == nil {
		n.ports.Persist(Persist{Base: &base})
	}
}

// decideFastPath says how this member proposes until the next tick.
func (n *Node) decideFastPath(now time.Time) {
	counted := n.replica.FastCounts()
	n.counts, n.fast = n.scheduler.Decide(now, &offers.View{
		Self: n.options.Raft.ID, Leader: n.replica.Leader(), Voters: n.replica.InForce().Config.Voters,
		Outcomes: offers.Outcomes{
			Tried: counted.Tried, Agreed: counted.Decided + counted.Overtaken, Disagreed: counted.Disagreed,
		},
		Distance: n.ports.Distance,
	})
	n.proposals.InferCommits(n.counts)
}

// tick repeats what has been without answer for too long.
func (n *Node) tick() {
	n.ticks++
	n.proposals.Tick(n.ticks)
	if patience := uint64(n.options.RetryTicks); n.ticks > patience {
		n.proposals.ResendOverdue(n.ticks - patience)
		n.reads.resend(n.ticks - patience)
	}
}

// gathers reports whether proposals may have to wait here. Elsewhere they leave at once: the leader gathers for all.
func (n *Node) gathers() bool { return n.gathering.gate.Holds() && n.leader == n.options.Raft.ID }

// gather gives the core what others have proposed, unless more is waited for, and reports whether the proposals of this member
// may go, too.
func (n *Node) gather(now time.Time) bool {
	g := &n.gathering
	if n.gathers() {
		waiting := g.proposals + n.proposals.Unsent()
		g.shut = waiting > 0 && !g.gate.Pass(now, waiting, g.running(n.replica.Commit()))
		if g.shut {
			return false
		}
	}
	n.inputs = append(n.inputs, g.held...)
	clear(g.held)
	g.held, g.proposals, g.shut = g.held[:0], 0, false
	return true
}

// collect adds the proposals of this member to the inputs, unless they have to wait, and the waiting reads.
func (n *Node) collect(proposes bool) {
	if n.leader == consensus.NoMember {
		return
	}
	if proposes {
		n.propose()
	}
	if id := n.reads.take(n.ticks, n.now); id != 0 {
		n.inputs = append(n.inputs, raft.Read{IDs: []uint64{id}, Spread: n.counts})
	}
}

func (n *Node) propose() {
	out := n.proposals.Take(n.ticks, n.now, n.fast)
	for _, change := range out.Changes {
		n.inputs = append(n.inputs, raft.ChangeConfig{Proposal: change})
	}
	if len(out.Commands) > 0 {
		n.inputs = append(n.inputs, raft.Propose{Proposals: out.Commands})
	}
	if len(out.Offers) > 0 {
		n.inputs = append(n.inputs, raft.Propose{Proposals: out.Offers, Fast: true})
	}
}

// perform does what the core put out, field by field in the order of raft.Output, which gives the reason for each
// place. A new leader is noticed once the refusals of the old one are known, and before the events, which nothing
// depends on.
func (n *Node) perform(out *raft.Output) {
	if out.Config != nil {
		n.ports.Configure(*out.Config)
	}
	n.waits.committed(n.now, out.Commit, n.leads())
	if len(out.Send) > 0 {
		n.waits.say(out.Send)
		n.ports.Send(out.Send)
	}
	if request, asks := PersistOf(out); asks {
		request.Asked = n.now
		n.ports.Persist(request)
		n.gathering.wrote(out.Entries)
		n.waits.logged(n.now, out.Entries, n.leads())
	}
	if out.Install != nil {
		n.ports.Install(*out.Install)
	}
	if out.Inferred != nil {
		n.proposals.NoteInferred(*out.Inferred)
	}
	n.progressed(out.Ready)
	if len(out.Apply) > 0 {
		n.ports.Apply(out.Apply)
	}
	for _, to := range out.StopSnapshot {
		if n.ports.StopSnapshot != nil {
			n.ports.StopSnapshot(to)
		}
	}
	for _, request := range out.NeedSnapshot {
		n.ports.SendSnapshot(request.To)
	}
	if len(out.Decided) > 0 {
		if n.ports.Decided != nil {
			n.ports.Decided(out.Decided)
		}
		n.proposals.Decided(n.now, n.leader, out.Decided)
	}
	if len(out.Reads) > 0 {
		n.reads.answered(out.Reads, proposals.Passage{Known: n.now, Waited: out.ReadsWaited, Leader: n.leader})
	}
	if len(out.FailedReads) > 0 {
		n.reads.failed(out.FailedReads)
	}
	if len(out.Refusals) > 0 {
		n.proposals.Refuse(out.Refusals)
	}
	n.follow()
	if len(out.Events) > 0 {
		n.ports.Observe(out.Events)
	}
}

// leads reports whether this member leads.
func (n *Node) leads() bool { return n.replica.Leader() == n.options.Raft.ID }

// progressed notes, for the passages of proposals, what the step committed, and up to where it is durable here.
func (n *Node) progressed(ready consensus.Index) {
	w := &n.waits
	if w.commit.Upto == 0 && ready == w.ready {
		return
	}
	w.ready = ready
	n.proposals.Progressed(n.now, proposals.Progress{
		Commit: w.commit.Upto, Waited: w.commit.Waited, Leader: n.replica.Leader(), Ready: ready,
	})
}

// follow notices a new leader, to whom everything unanswered is repeated.
func (n *Node) follow() {
	leader, term := n.replica.Leader(), n.replica.Term()
	if leader == n.leader && term == n.term {
		return
	}
	n.leader, n.term = leader, term
	if leader != consensus.NoMember {
		n.proposals.Resend(n.ticks)
		n.reads.resend(n.ticks)
	}
}

// Resolve completes the proposals among entries that were applied with results, and the reads that waited for them.
// It may be called by the goroutine that applies; Step(raft.Applied) then tells the core.
func (n *Node) Resolve(entries []consensus.Entry, results []kv.Result) {
	n.proposals.Resolve(entries, results)
	n.reads.advance(entries[len(entries)-1].Index)
}

// Awaits reports whether a caller waits here for the result of a proposal. One that comes later gets a result that may have
// Left, as does one that waited for a snapshot, or for an entry that was not the first of its proposal.
func (n *Node) Awaits(id consensus.ProposalID) bool { return n.proposals.Awaits(id) }

// Restored does the same after a snapshot replaced the state machine.
func (n *Node) Restored(meta consensus.SnapshotMeta, results proposals.ResultTable) error {
	if err := n.proposals.Restored(results); err != nil {
		return err
	}
	n.reads.advance(meta.Position.Index)
	return nil
}

// Next returns when Step has something to do that waits for its time; false if nothing does.
func (n *Node) Next() (time.Time, bool) {
	at, waits := n.scheduler.Next()
	if !n.gathering.shut {
		return at, waits
	}
	if due := n.gathering.gate.Deadline(); !waits || due.Before(at) {
		return due, true
	}
	return at, true
}

// Gathering reports whether proposals wait here for more of them.
func (n *Node) Gathering() bool { return n.gathering.shut }

// Waiting reports whether the next Step has something to propose or ask, and Next does not say when.
func (n *Node) Waiting() bool {
	return n.leader != consensus.NoMember && (n.proposals.Waiting() && !n.gathering.shut || n.reads.waiting())
}

// Replica gives the core, for status and for the simulator's checkers.
func (n *Node) Replica() *raft.Replica { return n.replica }

// Proposals gives the table of what was proposed here. Any goroutine may use it.
func (n *Node) Proposals() *proposals.Table { return n.proposals }

// AddReader has a reader told once the state applied here shows everything acknowledged before the call. Any goroutine may call
// it; the question leaves with the next Step.
func (n *Node) AddReader(r *Reader) { n.reads.join(r) }

// DropReader forgets a reader. Any goroutine may call it; it may just be being told.
func (n *Node) DropReader(r *Reader) { n.reads.leave(r) }
