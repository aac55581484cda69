package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/sim/guard"
)

// credentials are the claim of a process, and the truth about it.
type credentials struct {
	// impostor says why no member may count the messages of this process under its member id: its disk was emptied, restored
	// from an older copy, or cloned. Empty: it is the member.
	impostor string
	since    time.Duration   // when it became an impostor
	ended    bool            // the process knows that its directory can never be used again
	original *host           // host whose disk this one is a copy of, and which runs at the same time
	witness  *host           // of a copy that was made while it ran: the leader that knows what it acknowledged since
	term     consensus.Term  // in which the witness leads
	forgot   consensus.Index // index up to which it had acknowledged to the witness
	denied   time.Duration   // since when it denies those entries
	heir     *host           // the member that replaces it, once the operator has begun to

	emptied int      // number of times that the disk was emptied: each time it gets another storage id
	saved   *disk.FS // a copy of the disk, made while the process did not run
	savedAt uint64   // number of starts of that copy

	founding *newcomer               // it has no data yet
	began    []identity.Bound        // the bindings with which it made its data, if it took part in a founding
	hears    map[consensus.Life]bool // the lives of members that it has accepted
	claim    identity.Claim          // of this life
	held     []check.Ack             // writes that a recovered member must keep
	epochs   *epochWatch             // of this life; nil in worlds without recoveries
	guard    *guard.Guard            // of this life; nil in worlds without faults of identity
}

// disown makes a host an impostor, which no member may count. Its actions from now on are no part of the cluster's history:
// they go to a Suite of their own, whose report is not read.
func (h *host) disown(why string) {
	h.impostor, h.since, h.ended = why, h.run.Now(), false
	h.suite = check.NewSuite(h.run.Now, h.base)
}

// openGuard opens the guard of a life.
func (h *host) openGuard(data *datadir.Data) {
	if !h.run.plan.Identity {
		return
	}
	seen, err := data.SeenPeers()
	if err != nil {
		seen = nil // it is learned again, as in the real member
	}
	own := &data.Identity
	h.claim = identity.Claim{
		Cluster: own.Cluster, Epoch: own.Epoch, Member: own.Member, Storage: own.Storage, Life: data.Life(),
		Address: h.advertised,
	}
	h.hears = map[consensus.Life]bool{}
	h.guard = guard.New(h.claim, seen, h.run.broken.Rules, h.deadAfter())
	h.after(bindScan, h.bindMet)
	if h.run.plan.Recovers {
		h.epochs = newEpochWatch(h.claim, h.run.broken.Rules, h.extension())
	}
}

// deadAfter is how long a peer must be silent to count as dead.
func (h *host) deadAfter() time.Duration { return 3 * h.extension() }

const bindScan = 300 * time.Millisecond

// bindMet is what a leader does by itself: it binds the members that it has met to their data directories.
func (h *host) bindMet() {
	h.after(bindScan, h.bindMet)
	if !h.leads() {
		return
	}
	config := h.proc.Node.Replica().InForce().Config
	if steps := identity.Bindings(&config, h.guard.Met(), h.id, h.claim.Storage); len(steps) > 0 {
		request := consensus.ChangeRequest{Steps: steps, Protocol: consensus.ProtocolSingle}
		_ = h.proc.Clients.Change(request, func(error) {}) // it is tried again
	}
}

// distrust refuses a member that denied entries that it had acknowledged.
func (h *host) distrust(e raft.Denied) {
	if h.guard != nil && h.guard.Distrust(e.Member) {
		if err := h.proc.Data.WriteSeenPeers(h.guard.Claims.Seen()); err != nil {
			h.after(0, func() { h.fail(err) })
		}
	}
}

// told is the reaction of a process to a refusal by a peer.
func (h *host) told(by *host, refusal *identity.Refusal) {
	h.run.trace.Note(h.run.Now(), h.slot, diary.Refused, uint64(by.slot), uint64(refusal.Reason), 0, refusal.Error)
	if applied, _ := h.proc.Data.Machine.Config(); !identity.Obey(refusal.Reason, &h.claim, &applied, h.run.broken.Rules) {
		return
	}
	if h.impostor == "" {
		h.run.suite.Report("identity", fmt.Sprintf("member %v, on its own disk, was refused by %v: %v", h.id, by.id, refusal))
		return
	}
	if refusal.Reason != identity.Cloned {
		lost := &datadir.LostError{Reason: refusal.Reason, Text: refusal.Text}
		_ = h.proc.Data.MarkLost(lost) // else it is refused again
	}
	h.disk = h.disk.Crash(disk.KeepAll, h.rng)
	h.down()
	h.ended = true
}

// shake lets a sender judge the process to which it is about to send. It returns false if the sender may not send.
func (n *network) shake(from, to *host) bool {
	if from.guard == nil || !to.alive || to.guard == nil {
		return true
	}
	if !n.mayHear(&to.credentials, from) {
		return false
	}
	if to.impostor == leftOver { // the dialled process judges first; only here that shows more
		n.welcome(to, from, &from.credentials, n.evidence(from, &from.credentials, to), true)
	}
	evidence := identity.Said
	if n.at(from, to.id) == to { // the address of the member that it claims to be leads to it
		evidence = identity.Dialled
	}
	return n.welcome(from, to, &to.credentials, evidence, false)
}

// evidence is the evidence for the stream of a process that dialled another one, under the claim that it sent: the dialled
// process asks at the address of the claimed member, and the process that answers there can confirm only a stream that it
// opened itself. After one such answer, all its streams are known.
func (n *network) evidence(from *host, sent *credentials, to *host) identity.Evidence {
	answers := n.at(to, sent.claim.Member) == from && from.alive && from.claim.Life == sent.claim.Life &&
		n.link(to.slot, from.slot).cuts == 0
	if to.guard.Dialled(sent.claim.Life) || answers {
		return identity.Dialled
	}
	return identity.Said
}

// meet lets both ends of a connection judge each other, for calls outside of streams. moved says that the caller reports its
// address, and so may be at one that no member knows yet.
func (n *network) meet(from, to *host, moved bool) bool {
	if !n.shake(from, to) {
		return false
	}
	if to.guard == nil {
		return true
	}
	evidence := n.evidence(from, &from.credentials, to)
	return n.mayHear(&from.credentials, to) && n.welcome(to, from, &from.credentials, evidence, true) &&
		(moved || to.guard.Hears(&from.claim, evidence))
}

// welcome lets a process judge a claim. With tell, a refused process is notified.
func (n *network) welcome(at, from *host, sent *credentials, evidence identity.Evidence, tell bool) bool {
	claim := &sent.claim
	outcome, refusal := at.guard.Judge(claim, evidence, n.run.Now(), n.listener(at))
	switch outcome {
	case guard.Welcome:
	case guard.Remember:
		if err := at.proc.Data.WriteSeenPeers(at.guard.Claims.Seen()); err != nil {
			at.guard.Undo(claim)
			return false
		}
		at.guard.Claims.Saved()
	case guard.Refused:
		if tell {
			n.refuse(at, from, claim.Life, refusal)
		}
		return false
	default:
		return false
	}
	if sent.impostor == "" && at.impostor == "" {
		if outcome == guard.Remember || n.run.broken.Rules.IgnoreLives { // else the member may be in no configuration yet
			n.run.suite.Bindings.Met(at.id, claim.Storage, claim.Life.Boots)
		}
		if !at.hears[claim.Life] && (n.run.broken.Rules.IgnoreLives || at.knows(claim.Life)) {
			at.hears[claim.Life] = true
		}
	}
	return true
}

// knows reports whether the guard of a process remembers a life: it does not while no configuration has the member.
func (h *host) knows(life consensus.Life) bool {
	return slices.ContainsFunc(h.guard.Claims.Seen(), func(s identity.Seen) bool { return s.Life == life })
}

// refuse counts a refusal, and carries it to the process if the refusal is final.
func (n *network) refuse(by, from *host, life consensus.Life, refusal *identity.Refusal) {
	n.run.counts.Unwelcome++
	if !refusal.Reason.Final() || n.link(by.slot, from.slot).cuts > 0 {
		return
	}
	n.run.After(n.delay(), func() {
		if from.alive && from.claim.Life == life {
			n.run.current = from
			from.told(by, refusal)
		}
	})
}

// listener returns, for a process, when it last heard from other lives. Connections are alive while their processes and links
// are.
func (n *network) listener(at *host) guard.Listener {
	return func(life consensus.Life) (heard time.Duration, open bool) {
		for _, h := range n.cluster.list {
			if !h.alive || h.claim.Life != life {
				continue
			}
			if n.link(h.slot, at.slot).cuts > 0 || h.frozen > n.run.Now() {
				return 0, true // a stream that is silent
			}
			return n.run.Now(), true
		}
		return 0, false
	}
}

// mayHear limits the faults to those that the rules cover (ADR 0020, "What remains open"): a process without better evidence
// may take a copy for the original. So a copy reaches only the processes that are in contact with the original and have met it
// at its address, and an older disk only those that have met the life from which it was restored. If a copy was made while the
// member ran, only a leader knows what it lacks, while its log reaches back to there.
func (n *network) mayHear(from *credentials, to *host) bool {
	switch {
	case from.impostor == leftOver:
		return true
	case from.original != nil:
		heard, _ := n.listener(to)(from.original.claim.Life)
		return from.original.alive && heard == n.run.Now() && to.hears[from.original.claim.Life] &&
			to.guard.Believes(&from.original.claim)
	case from.witness != nil:
		return to == from.witness && to.leads() && to.proc.Node.Replica().Term() == from.term &&
			to.suite.LogBase(to.id) <= from.forgot
	case from.impostor == rolledBack:
		return n.run.suite.Bindings.HasMet(to.id, from.claim.Storage, from.claim.Life.Boots)
	}
	return true
}

// excused reports whether a message of a process that was restored from a copy made while it ran promises no forgotten entry:
// it acknowledges no entries.
func (s *credentials) excused(m *consensus.Message) bool {
	return s.witness != nil && m.Kind != consensus.MsgAppendReply
}

// admit judges the claim of arriving messages, and returns those that may reach the core.
func (n *network) admit(from *host, sent *credentials, to *host, inputs []raft.Input) []raft.Input {
	if to.guard == nil {
		return inputs
	}
	messages := make([]consensus.Message, len(inputs))
	for i := range inputs {
		messages[i] = inputs[i].(raft.Receive).Message
	}
	if err := identity.Addressed(messages[0].To, to.id); err != nil {
		n.run.counts.Unwelcome++
		return nil
	}
	claim := &sent.claim
	evidence := n.evidence(from, sent, to)
	if !n.mayHear(sent, to) || !n.welcome(to, from, sent, evidence, true) {
		return nil
	}
	messages, refusal := to.guard.Admit(claim, evidence, messages)
	if refusal != nil {
		n.refuse(to, from, claim.Life, refusal)
		return nil
	}
	if len(messages) == 0 && to.removed(claim.Member) && from.claim.Life == claim.Life && !n.run.broken.RemovedUntold {
		n.carry(to, from, []consensus.Message{{Kind: consensus.MsgRemoved, From: to.id, To: from.id}})
	}
	if to.epochs != nil {
		messages = to.epochs.State(n.run.Now()).Admit(messages)
	}
	if claim.Epoch != to.claim.Epoch && len(messages) > 0 {
		n.run.suite.Report("epoch", fmt.Sprintf("member %v of epoch %v hears %v of epoch %v", to.id, to.claim.Epoch, from.id,
			claim.Epoch))
	}
	if len(messages) > 0 && to == sent.witness && messages[0].Kind == consensus.MsgAppendReply && messages[0].Reject &&
		from.denied == 0 {
		from.denied = n.run.Now()
	}
	kept := make([]raft.Input, len(messages))
	for i := range messages {
		if to.impostor == "" && !sent.excused(&messages[i]) {
			n.run.suite.Heard(to.id, &messages[i], claim.Storage, sent.impostor)
		}
		kept[i] = raft.Receive{Message: messages[i]}
	}
	return kept
}
