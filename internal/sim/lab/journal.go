package lab

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Kind is the kind of a Record.
type Kind uint8

// The kinds. Records about a configuration come from many members at nearly the same time, and are folded.
const (
	KindNote        Kind = iota
	KindArrow            // a message
	KindLeads            // a member was elected
	KindCampaign         // a member asks for votes
	KindFollows          // a leader or candidate steps down
	KindLogged           // a leader logged a configuration
	KindInForce          // another configuration is in force at a member
	KindCommitted        // a member knows that a configuration committed
	KindSettled          // a member knows that a configuration is settled
	KindUndone           // the entry of a configuration was truncated
	KindRemoved          // a member was notified of its removal
	KindRequest          // a request of the operator
	KindRefused          // the request was refused
	KindDone             // the change is done
	KindSettledDone      // the change is settled
	KindFault            // of the network
	KindCrash
	KindRestart
	KindOff
	KindBreach // a law is broken
)

// Record is one event of a chart.
type Record struct {
	At     time.Duration // since the beginning of the chart
	Kind   Kind
	Member memberID // member of the column; NoMember: all
	Mark   string   // mark in that column
	Text   string
	Minor  bool // left out unless the chart is verbose
	Arrow  *Arrow
	Cells  []Cell
	frame  int // of the Tape, which shows it
}

// Cell is the state of one member at the time of a record.
type Cell struct {
	Glyph  rune
	Config string // the name of the configuration in force; empty if it does not run
}

// Arrow is a message.
type Arrow struct {
	From, To memberID
	What     string
	Sent     time.Duration
	Arrived  time.Duration
	Lost     bool
	shown    bool
	kind     consensus.MessageKind
	carries  bool // a configuration, or the notice that it is in force
}

// journal keeps the events in order.
type journal struct {
	w       *world
	silent  bool
	records []Record
	acks    []time.Duration
}

// The lifelines.
const (
	glyphLeader    = '★'
	glyphCandidate = '?'
	glyphVoter     = '│'
	glyphJoint     = '║'
	glyphLearner   = '┊'
	glyphDown      = ' '
)

func (j *journal) cells() []Cell {
	cells := make([]Cell, len(j.w.members))
	for i, m := range j.w.members {
		cells[i] = m.cell()
	}
	return cells
}

func (m *member) cell() Cell {
	if !m.running() {
		return Cell{Glyph: glyphDown}
	}
	s := &m.status
	c := Cell{Glyph: glyphVoter, Config: m.w.names.short(s.ConfigID, &s.Config)}
	switch {
	case s.Role == raft.Leader:
		c.Glyph = glyphLeader
	case s.Role != raft.Follower:
		c.Glyph = glyphCandidate
	case !s.Config.IsVoter(m.id):
		c.Glyph = glyphLearner
	case s.Config.IsJoint():
		c.Glyph = glyphJoint
	}
	return c
}

func (j *journal) record(r Record) {
	if j.silent {
		return
	}
	r.At, r.Cells = j.w.Now()-j.w.origin, j.cells()
	j.records = append(j.records, r)
	j.w.recorder.noted(&j.records[len(j.records)-1])
}

// marks are the marks in the column of the member concerned.
var marks = map[Kind]string{
	KindCrash: "✖", KindRestart: "↻", KindOff: "■", KindRemoved: "⊘", KindBreach: "!",
	KindCommitted: "✓", KindSettled: "✔", KindUndone: "↩",
}

func (j *journal) add(kind Kind, m memberID, format string, args ...any) {
	j.record(Record{Kind: kind, Member: m, Mark: marks[kind], Text: fmt.Sprintf(format, args...)})
}

// soFar returns what happened so far. It does not hold the later fate of messages in flight.
func (j *journal) soFar() []Record {
	records := slices.Clone(j.records)
	for i := range records {
		if a := records[i].Arrow; a != nil {
			now := *a
			records[i].Arrow = &now
		}
	}
	return records
}

func (j *journal) acked() { j.acks = append(j.acks, j.w.Now()-j.w.origin) }

// sent notes a message that is sent now.
func (j *journal) sent(m *message) *Arrow {
	what, shown := j.describe(m)
	a := j.arrow(m.From, m.To, what, shown)
	a.kind, a.carries = m.Kind, m.Kind == consensus.MsgAppend && shown
	return a
}

// arrow notes a message or another transfer that begins now.
func (j *journal) arrow(from, to memberID, what string, shown bool) *Arrow {
	a := &Arrow{From: from, To: to, What: what, Sent: j.w.Now() - j.w.origin, shown: shown}
	j.record(Record{Kind: KindArrow, Member: from, Arrow: a})
	return a
}

// describe returns the subject of a message, and whether it is worth a line.
func (j *journal) describe(m *message) (what string, worth bool) {
	answer := "yes"
	if m.Reject {
		answer = "no"
	}
	switch m.Kind {
	case consensus.MsgPreVote:
		return fmt.Sprintf("would you vote for %v?", m.From), false
	case consensus.MsgPreVoteReply:
		return answer + ", would vote", false
	case consensus.MsgVote:
		return fmt.Sprintf("vote for %v in term %d?", m.From, m.Term), true
	case consensus.MsgVoteReply:
		return answer, true
	case consensus.MsgTimeoutNow:
		return "timeout-now: be elected at once", true
	case consensus.MsgRemoved:
		return "you were removed", true
	case consensus.MsgAppend:
		return j.describeAppend(m)
	case consensus.MsgRecord, consensus.MsgFastPropose:
		return fmt.Sprintf("offers %s under %s", j.w.names.writes(m.Proposals), j.underOf(m)), j.w.clients.told
	case consensus.MsgRecorded, consensus.MsgFast:
		return j.describeVerdicts(m), j.w.clients.told
	case consensus.MsgProposeReply:
		return j.describeRefusals(m), j.w.clients.told
	}
	return kindText(m.Kind), false
}

func (j *journal) describeAppend(m *message) (what string, worth bool) {
	what = "append"
	for i := range m.Entries {
		e := &m.Entries[i]
		switch {
		case isConfig(*e):
			short, _ := j.w.names.logged(consensus.ConfigID{Index: e.Index, Term: e.Term})
			what += " " + short
			worth = true
		case settles(e):
			what += " notice that it is in force"
			worth = true
		}
	}
	if !worth {
		what = fmt.Sprintf("append %d entries, committed %d", len(m.Entries), m.Commit)
	}
	return what, worth
}

func kindText(kind consensus.MessageKind) string {
	switch kind {
	case consensus.MsgAppendReply:
		return "acknowledgement that decides"
	case consensus.MsgHeartbeat:
		return "commit notice"
	case consensus.MsgHeartbeatReply:
		return "heartbeat's echo"
	case consensus.MsgPropose, consensus.MsgProposeReply:
		return "proposal"
	case consensus.MsgSnapshotOffer, consensus.MsgSnapshotReply:
		return "snapshot"
	}
	return "message"
}

// tell writes the records of a step of m. A consequence in the same step becomes part of the record of its cause.
func (j *journal) tell(m *member, out *raft.Output) {
	logged, committed := false, consensus.ConfigID{}
	for _, e := range out.Events {
		switch e := e.(type) {
		case raft.ConfigProposed:
			logged = out.Config != nil && out.Config.ID.Index == e.ID.Index
			j.logs(m, e.ID, logged)
			continue
		case raft.ConfigCommitted:
			committed = e.ID
			if settledIn(out, e.ID) {
				continue
			}
		case raft.ConfigSettled:
			j.settles(m, e.ID, committed == e.ID)
			continue
		}
		j.event(m, e)
	}
	if out.Config != nil && !logged {
		short := j.w.names.short(out.Config.ID, &out.Config.Config)
		full := j.w.names.full(out.Config.ID, &out.Config.Config)
		j.record(Record{Kind: KindInForce, Member: m.id, Mark: short, Text: full + " in force at"})
	}
}

func settledIn(out *raft.Output, id consensus.ConfigID) bool {
	return slices.ContainsFunc(out.Events, func(e raft.Event) bool {
		settled, ok := e.(raft.ConfigSettled)
		return ok && settled.ID == id
	})
}

func (j *journal) logs(m *member, id consensus.ConfigID, inForce bool) {
	short, full := j.w.names.logged(id)
	r := Record{Kind: KindLogged, Member: m.id, Text: fmt.Sprintf("%v logs %s", m.id, full)}
	if inForce {
		r.Mark = short
		r.Text += ", in force here at once"
	}
	j.record(r)
}

// settles records that m knows a configuration to be settled. The record of the first entry of a change with two entries is
// minor: the second entry settles the change.
func (j *journal) settles(m *member, id consensus.ConfigID, committed bool) {
	short, _ := j.w.names.logged(id)
	r := Record{Kind: KindSettled, Member: m.id, Mark: marks[KindSettled], Text: short + " settled, knows"}
	switch {
	case j.w.broken.switched: // a change that the core calls settled has only committed
		r.Kind, r.Mark, r.Text = KindCommitted, marks[KindCommitted], short+" committed, knows"
	case committed:
		r.Text = short + " committed and settled, knows"
	}
	r.Minor = id.Index < m.status.ConfigID.Index
	j.record(r)
}

func (j *journal) event(m *member, e raft.Event) {
	tell := func(kind Kind, format string, args ...any) { j.add(kind, m.id, format, args...) }
	switch e := e.(type) {
	case raft.BecameLeader:
		tell(KindLeads, "%v leads term %d", m.id, e.Term)
	case raft.BecameCandidate:
		tell(KindCampaign, "%v asks to be elected in term %d", m.id, e.Term)
	case raft.BecameFollower:
		tell(KindFollows, "%v steps down", m.id)
	case raft.QuorumLost:
		tell(KindFollows, "%v hears no majority", m.id)
	case raft.TransferStarted:
		tell(KindNote, "%v hands leadership to %v", m.id, e.To)
	case raft.Removed:
		tell(KindRemoved, "%v knows that it is removed", m.id)
	case raft.ConfigCommitted:
		short, _ := j.w.names.logged(e.ID)
		tell(KindCommitted, "%s committed, knows", short)
	case raft.ConfigUndone:
		short, _ := j.w.names.logged(e.ID)
		tell(KindUndone, "%s undone at", short)
	case raft.BecamePreCandidate, raft.LeaderSuspected, raft.Truncated:
		j.record(Record{Kind: KindNote, Member: m.id, Text: fmt.Sprintf("%v %v", m.id, e), Minor: true})
	}
}

// entry describes an entry for a reader: index, term and content.
func (n *names) entry(e *entry) string {
	what := "no-op"
	switch e.Kind {
	case consensus.EntryCommand:
		what = fmt.Sprintf("w%d", e.Proposal.Sequence)
	case consensus.EntryConfig:
		what, _ = n.logged(consensus.ConfigID{Index: e.Index, Term: e.Term})
	}
	return fmt.Sprintf("%d of term %d (%s)", e.Index, e.Term, what)
}
