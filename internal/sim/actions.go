package sim

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
	spec "github.com/quorate/quorate/internal/model/trace"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/storage/wal"
)

// actions writes what the cores do as steps of package model/trace, for a reader that knows the specification only.
type actions struct {
	w   *World
	out *json.Encoder
}

func newActions(w *World, out io.Writer) *actions {
	if out == nil {
		return nil
	}
	return &actions{w, json.NewEncoder(out)}
}

func (a *actions) write(s spec.Step) {
	s.At = a.w.Now().Microseconds()
	if err := a.out.Encode(&s); err != nil {
		a.w.suite.Report("trace", fmt.Sprintf("actions: %v", err))
	}
}

func markOf(m consensus.Mark) *spec.Mark { return &spec.Mark{uint64(m.Index), uint64(m.Term)} }

func marksOf(entries []consensus.Entry) (marks []spec.Mark, changes bool) {
	for i := range entries {
		marks = append(marks, *markOf(entries[i].Mark()))
		changes = changes || entries[i].Kind == consensus.EntryConfig
	}
	return marks, changes
}

func (a *actions) begin(voters []consensus.MemberID) {
	if a == nil {
		return
	}
	s := spec.Step{Action: spec.Begin}
	for _, id := range voters {
		s.Voters = append(s.Voters, uint64(id))
	}
	a.write(s)
}

func (a *actions) started(id consensus.MemberID, hard consensus.HardState, base consensus.Mark, entries []consensus.Entry) {
	if a == nil {
		return
	}
	marks, _ := marksOf(entries)
	a.write(spec.Step{Action: spec.Start, Member: uint64(id), Term: uint64(max(hard.Term, base.Term)),
		Vote: uint64(hard.Vote), Base: markOf(base), Entries: marks})
}

// persisted says what is on its way to the disk: the core has it.
func (a *actions) persisted(h *host, request *node.Persist) {
	if a == nil {
		return
	}
	b := &request.Batch
	if b.Hard != nil {
		h.vote = b.Hard.Vote
	}
	s := spec.Step{Action: spec.Persist, Member: uint64(h.id), Term: uint64(h.node.Replica().Term()), Vote: uint64(h.vote)}
	s.Entries, s.Changes = marksOf(b.Entries)
	if b.Reset != nil {
		s.Base = markOf(b.Reset.Mark)
	}
	if b.Hard != nil || len(b.Entries) > 0 || b.Reset != nil {
		a.write(s)
	}
	for i := range b.Witness {
		a.recordedOwn(h, &b.Witness[i])
	}
}

// recordedOwn: a proposer counts its own record without a message.
func (a *actions) recordedOwn(h *host, w *wal.WitnessRecord) {
	word := func(at int) uint64 { return binary.BigEndian.Uint64(w.Attempt[at:]) }
	id := consensus.ProposalID{Sequence: word(16)}
	id.Session.Member, id.Session.Number = consensus.MemberID(word(0)), word(8)
	if id.Session.Member == h.id && !w.Forget {
		a.write(spec.Step{Action: spec.Accept, Member: uint64(h.id), Term: uint64(h.node.Replica().Term()),
			Proposal: fmt.Sprint(id), Revision: word(24)})
	}
}

// sent picks the messages that promise something.
func (a *actions) sent(messages []consensus.Message) {
	if a == nil {
		return
	}
	for i := range messages {
		m := &messages[i]
		s := spec.Step{Member: uint64(m.From), To: uint64(m.To), Term: uint64(m.Term)}
		switch m.Kind {
		case consensus.MsgVoteReply:
			if s.Action = spec.Grant; !m.Reject {
				a.write(s)
			}
		case consensus.MsgAppendReply, consensus.MsgHolds:
			if s.Action, s.Match = spec.Acknowledge, markOf(m.Match); !m.Reject && m.Match.Index > 0 {
				a.write(s)
			}
		case consensus.MsgRecorded:
			s.Action = spec.Accept
			a.verdicts(s, m.Verdicts)
		case consensus.MsgFast:
			s.Action = spec.Answer
			a.verdicts(s, m.Verdicts)
		}
	}
}

func (a *actions) verdicts(s spec.Step, verdicts []consensus.Verdict) {
	for i := range verdicts {
		if v := &verdicts[i]; v.Refusal == consensus.RefusedNot {
			s.Proposal, s.Revision = fmt.Sprint(v.Proposal), v.Revision
			a.write(s)
		}
	}
}

func (a *actions) committed(h *host) {
	if a == nil {
		return
	}
	if r := h.node.Replica(); r.Commit() > h.toldCommit {
		h.toldCommit = r.Commit()
		a.write(spec.Step{Action: spec.Commit, Member: uint64(h.id), Term: uint64(r.Term()), Index: uint64(r.Commit())})
	}
}

func (a *actions) decided(id consensus.MemberID, wins []tally.Win) {
	if a == nil {
		return
	}
	for i := range wins {
		a.write(spec.Step{Action: spec.Decide, Member: uint64(id), Proposal: fmt.Sprint(wins[i].Proposal),
			Revision: wins[i].Revision})
	}
}
