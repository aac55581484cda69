package raft_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// The part of the test's members that the fast path needs: a state machine with revisions and results, a pool on disk, and
// replies that are evaluated once the entry is on disk.

// keys is a state machine whose commands name the keys that they read and write, "ab=1", or all of them, "*=1", or none, "-=1";
// "!=1" conflicts with every other one, and "~a=1" reads and changes nothing. The result of a command is the revision at which
// each of its keys was written before, so that a different order of any two shows.
type keys struct {
	dropped  *rules.Set // of those that a state machine keeps
	revision uint64
	modified map[byte]uint64
	results  map[consensus.ProposalID]result
}

// result is the result of a proposal.
type result struct {
	index    consensus.Index
	revision uint64
	reply    string
	aborted  bool
	times    int // how many times it was applied
}

const allKeys = "abcdefgh"

// touched returns the keys of a command, and whether it conflicts with every other one.
func touched(payload []byte) (names string, barrier bool) {
	names, _, _ = strings.Cut(strings.TrimPrefix(string(payload), "~"), "=")
	switch {
	case strings.HasPrefix(names, "!"):
		return allKeys, true
	case names == "*":
		return allKeys, false
	case names == "-":
		return "", false
	}
	return names, false
}

// changes reports whether a command takes a revision.
func changes(payload []byte) bool { return !strings.HasPrefix(string(payload), "~") }

func footprintOf(payload []byte) consensus.Footprint {
	names, barrier := touched(payload)
	f := consensus.Footprint{Barrier: barrier}
	if names == "%" { // a range
		f.Keys = append(f.Keys, keyrange.Range{Start: []byte("a"), End: []byte("i")})
		return f
	}
	if owner, ends := strings.CutPrefix(names, "$"); ends { // the end of a session
		id, _ := strconv.ParseUint(owner, 10, 64)
		f.Owners = append(f.Owners, memberID(id))
		return f
	}
	for _, name := range []byte(names) {
		f.Keys = append(f.Keys, keyrange.From([]byte{name}, nil))
	}
	return f
}

func (k keys) clone() keys {
	k.modified, k.results = maps.Clone(k.modified), maps.Clone(k.results)
	return k
}

// evaluate returns the result that a command would have now.
func (k *keys) evaluate(payload []byte) string {
	var b strings.Builder
	names, _ := touched(payload)
	for _, name := range []byte(names) {
		fmt.Fprintf(&b, "%c%d", name, k.modified[name])
	}
	return b.String()
}

func (k *keys) keepResult(id consensus.ProposalID, r result) {
	if id.IsZero() {
		return
	}
	if k.results == nil {
		k.results = map[consensus.ProposalID]result{}
	}
	r.times += k.results[id].times
	k.results[id] = r
}

// apply is the rule of docs/fast-path.md, as kv/apply has it.
func (k *keys) apply(e *entry) {
	if _, done := k.results[e.Proposal]; done && !k.dropped[rules.ApplyTwice] {
		return
	}
	revision := k.revision + 1
	if e.ExactRevision != 0 {
		switch {
		case e.ExactRevision > k.revision || k.dropped[rules.SkipApplies]:
			revision = e.ExactRevision
		case k.dropped[rules.SkipTakesNext]:
		case k.dropped[rules.SkipIsResult]:
			k.keepResult(e.Proposal, result{index: e.Index, reply: "skipped"})
			return
		default:
			return
		}
	}
	reply := k.evaluate(e.Payload)
	if !changes(e.Payload) {
		k.keepResult(e.Proposal, result{index: e.Index, revision: k.revision, reply: reply, times: 1})
		return
	}
	if k.modified == nil {
		k.modified = map[byte]uint64{}
	}
	names, _ := touched(e.Payload)
	for _, name := range []byte(names) {
		k.modified[name] = revision
	}
	k.revision = revision
	k.keepResult(e.Proposal, result{index: e.Index, revision: revision, reply: reply, times: 1})
}

func (k *keys) abort(e *entry) {
	if _, done := k.results[e.Proposal]; !done {
		k.keepResult(e.Proposal, result{index: e.Index, aborted: true})
	}
}

// stateAt returns a function that asks the state machine which a member has at the time of the call.
func (c *cluster) stateAt(id memberID) func(consensus.ProposalID) fast.ProposalState {
	return func(proposal consensus.ProposalID) fast.ProposalState { return c.node(id).store.keys.stateOf(proposal) }
}

func (k *keys) stateOf(id consensus.ProposalID) fast.ProposalState {
	if r, done := k.results[id]; done && r.reply != "skipped" {
		return fast.ProposalApplied
	}
	return fast.ProposalUnknown
}

// keep performs the changes of the pool in a persist request.
func (d *disk) keep(out *raft.Output, ForgetAtAppend bool) (forgot bool) {
	drop := func(gone func(r *consensus.Record) bool) bool {
		before := len(d.records)
		d.records = slices.DeleteFunc(slices.Clone(d.records), func(r consensus.Record) bool { return gone(&r) })
		return len(d.records) < before
	}
	for i := range out.Records {
		c := &out.Records[i]
		drop(func(r *consensus.Record) bool { return r.Attempt == c.Record.Attempt })
		if !c.Forget {
			d.records = append(d.records, c.Record)
		}
	}
	for i := range out.Entries {
		forgot = ForgetAtAppend && drop(func(r *consensus.Record) bool { return r.Proposal == out.Entries[i].Proposal }) || forgot
	}
	return forgot
}

// reply sends the leader's answers on the fast path: the result that the entry will have, if that is certain.
func (n *node) reply() {
	for i := range n.replies {
		evaluation := &n.replies[i]
		m := evaluation.Message
		m.Verdicts = nil
		for at := range evaluation.Entries {
			verdict := evaluation.Message.Verdicts[at]
			if n.foresee(&evaluation.Entries[at], &verdict) {
				m.Verdicts = append(m.Verdicts, verdict)
			}
		}
		if len(m.Verdicts) > 0 {
			n.c.net = append(n.c.net, m)
		}
	}
	n.replies = nil
}

func (n *node) foresee(e *entry, verdict *consensus.Verdict) bool {
	known, done := n.store.keys.results[e.Proposal]
	switch {
	case !changes(e.Payload):
		return false // the revision that it states depends on what comes before
	case n.c.shell[rules.LeaderEvaluatesLate]:
		verdict.Reply = []byte(n.store.keys.evaluate(e.Payload))
	case done && known.reply != "skipped":
		verdict.Reply = []byte(known.reply) // even of another attempt: the core must not let that count
		return !known.aborted
	case e.Index <= n.store.position.Index:
		return false
	default:
		verdict.Reply = []byte(n.store.keys.evaluate(e.Payload))
	}
	return true
}

// proposalOf returns a command of a client, to be proposed through any member, any number of times.
func proposalOf(sequence uint64, command string) consensus.Proposal {
	return consensus.Proposal{
		ID:   consensus.ProposalID{Session: consensus.SessionID{Member: 99, Number: 1}, Sequence: sequence},
		Kind: consensus.EntryCommand, Payload: []byte(command),
	}
}

// proposeFast proposes commands of a member, each to all voters at once.
func (c *cluster) proposeFast(id memberID, commands ...string) {
	for _, command := range commands {
		c.nextSeq++
		c.node(id).step(raft.Propose{Proposals: []consensus.Proposal{proposalOf(c.nextSeq, command)}, Fast: true})
	}
}

// held prints, for scripts, the revision of each store, how many proposals of others it holds, and those on its disk: a
// forgotten record leaves the disk with the next write, or is forgotten again.
func (s *script) held() {
	for _, n := range s.nodes {
		fmt.Fprintf(s.out, "%v: revision %d, holds %d, on disk", n.id, n.store.keys.revision, n.replica.FastCounts().Held)
		for i := range n.disk.records {
			fmt.Fprintf(s.out, " %s@%d", n.disk.records[i].Payload, n.disk.records[i].Revision)
		}
		fmt.Fprintln(s.out)
	}
}

// fastOnly delivers, for scripts, the messages of the fast path; the others stay under way.
func (s *script) fastOnly() {
	for moved := true; moved; {
		moved = false
		for _, n := range s.nodes {
			moved = n.drain() || moved
		}
		net := s.net
		s.net = nil
		for i := range net {
			if isFast(&net[i]) {
				s.deliver(net[i])
				moved = true
			} else {
				s.net = append(s.net, net[i])
			}
		}
	}
}
