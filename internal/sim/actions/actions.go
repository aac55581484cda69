package actions

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
	spec "github.com/quorate/quorate/internal/model/trace"
)

// Writer writes the actions of the cores as steps of package model/trace. A nil Writer writes nothing.
type Writer struct {
	out    *json.Encoder
	now    func() time.Duration
	report func(err error)
	held   map[consensus.MemberID]consensus.Position // the last acknowledgement of each member
}

// New returns a Writer to out, or nil if out is nil. report is called with errors of out.
func New(out io.Writer, now func() time.Duration, report func(err error)) *Writer {
	if out == nil {
		return nil
	}
	return &Writer{json.NewEncoder(out), now, report, map[consensus.MemberID]consensus.Position{}}
}

// Member writes the actions of one machine's core. A nil Member writes nothing.
type Member struct {
	w      *Writer
	id     consensus.MemberID
	vote   consensus.MemberID // last written
	commit consensus.Index    // last written in this life
}

// Member returns the Member of a machine's core.
func (w *Writer) Member(id consensus.MemberID) *Member {
	if w == nil {
		return nil
	}
	return &Member{w: w, id: id}
}

func (w *Writer) write(s spec.Step) {
	s.At = w.now().Microseconds()
	if err := w.out.Encode(&s); err != nil {
		w.report(err)
	}
}

func positionOf(m consensus.Position) *spec.Position {
	return &spec.Position{uint64(m.Index), uint64(m.Term)}
}

func positionsOf(entries []consensus.Entry) (positions []spec.Position, changes bool) {
	for i := range entries {
		positions = append(positions, *positionOf(entries[i].Position()))
		changes = changes || entries[i].Kind == consensus.EntryConfig
	}
	return positions, changes
}

// Begin writes the first voters.
func (w *Writer) Begin(voters []consensus.MemberID) {
	if w == nil {
		return
	}
	s := spec.Step{Action: spec.Begin}
	for _, id := range voters {
		s.Voters = append(s.Voters, uint64(id))
	}
	w.write(s)
}

// Started writes what a core found on its disk.
func (m *Member) Started(hard consensus.HardState, base consensus.Position, entries []consensus.Entry) {
	if m == nil {
		return
	}
	m.vote, m.commit = hard.Vote, 0
	positions, _ := positionsOf(entries)
	m.w.write(spec.Step{Action: spec.Start, Member: uint64(m.id), Term: uint64(max(hard.Term, base.Term)),
		Vote: uint64(hard.Vote), Base: positionOf(base), Entries: positions})
}

// Persisted writes a batch that the core, in a term, has handed to the disk.
func (m *Member) Persisted(term consensus.Term, b *consensus.Batch) {
	if m == nil {
		return
	}
	if b.Hard != nil {
		m.vote = b.Hard.Vote
	}
	s := spec.Step{Action: spec.Persist, Member: uint64(m.id), Term: uint64(term), Vote: uint64(m.vote)}
	s.Entries, s.Changes = positionsOf(b.Entries)
	if b.Reset != nil {
		s.Base = positionOf(b.Reset.Position)
	}
	if b.Hard != nil || len(b.Entries) > 0 || b.Reset != nil {
		m.w.write(s)
	}
	for i := range b.Witness {
		m.recordedOwn(term, &b.Witness[i])
	}
}

// recordedOwn writes a proposer's own record, which the proposer counts without a message.
func (m *Member) recordedOwn(term consensus.Term, r *consensus.WitnessRecord) {
	word := func(at int) uint64 { return binary.BigEndian.Uint64(r.Attempt[at:]) }
	id := consensus.ProposalID{Sequence: word(16)}
	id.Session.Member, id.Session.Number = consensus.MemberID(word(0)), word(8)
	if id.Session.Member == m.id && !r.Forget {
		m.w.write(spec.Step{Action: spec.Accept, Member: uint64(m.id), Term: uint64(term),
			Proposal: fmt.Sprint(id), Revision: word(24)})
	}
}

// Committed writes the commit index that a core knows, if it is a new one.
func (m *Member) Committed(term consensus.Term, commit consensus.Index) {
	if m == nil || commit <= m.commit {
		return
	}
	m.commit = commit
	m.w.write(spec.Step{Action: spec.Commit, Member: uint64(m.id), Term: uint64(term), Index: uint64(commit)})
}

// Decided writes the proposals of this core that the fast path decided.
func (m *Member) Decided(wins []tally.Decision) {
	if m == nil {
		return
	}
	for i := range wins {
		m.w.write(spec.Step{Action: spec.Decide, Member: uint64(m.id), Proposal: fmt.Sprint(wins[i].Proposal),
			Revision: wins[i].Revision})
	}
}

// Sent writes the messages that promise something.
func (w *Writer) Sent(messages []consensus.Message) {
	if w == nil {
		return
	}
	for i := range messages {
		m := &messages[i]
		s := spec.Step{Member: uint64(m.From), To: uint64(m.To), Term: uint64(m.Term)}
		switch m.Kind {
		case consensus.MsgVoteReply:
			if s.Action = spec.Grant; !m.Reject {
				w.write(s)
			}
		case consensus.MsgAppendReply, consensus.MsgAcknowledged, consensus.MsgHeartbeatReply:
			// An echo acknowledges what the core knows to be on disk, even before the acknowledgement itself has been sent.
			known := m.Kind == consensus.MsgHeartbeatReply && w.held[m.From] == m.Match
			if s.Action, s.Match = spec.Acknowledge, positionOf(m.Match); !m.Reject && m.Match.Index > 0 && !known {
				w.held[m.From] = m.Match
				w.write(s)
			}
		case consensus.MsgRecorded:
			s.Action = spec.Accept
			w.verdicts(s, m.Verdicts)
		case consensus.MsgFast:
			s.Action = spec.Answer
			w.verdicts(s, m.Verdicts)
		}
	}
}

func (w *Writer) verdicts(s spec.Step, verdicts []consensus.Verdict) {
	for i := range verdicts {
		if v := &verdicts[i]; v.Refusal == consensus.RefusedNot {
			s.Proposal, s.Revision = fmt.Sprint(v.Proposal), v.Revision
			w.write(s)
		}
	}
}
