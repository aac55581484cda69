package lab

import (
	"reflect"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Bounds of a Tape. Later frames and messages are counted, and left out.
const (
	maxFrames   = 6000
	maxFlights  = 20000
	tapeEntries = 10 // of the end of each log
)

// Tape is a run as a player shows it: the state of every member after each event, and every message. Times are in nanoseconds
// since the beginning of the chart. Equal options give equal tapes.
type Tape struct {
	Frames  []Frame  `json:"frames"`
	Flights []Flight `json:"flights"`
	LeftOut int      `json:"left_out"` // frames and messages beyond the bounds
}

// Frame is a moment at which something changed. Members that are not in it are as in the frame before; the first frame has
// all.
type Frame struct {
	At      int64         `json:"at"`
	Changed []MemberState `json:"changed,omitempty"`
	Groups  [][]memberID  `json:"groups,omitempty"` // of a network that is cut
}

// MemberState is one member at the time of a frame. While it does not run, its log is that on its disk.
type MemberState struct {
	ID      memberID        `json:"id"`
	Up      bool            `json:"up"`
	Gone    bool            `json:"gone,omitempty"` // it will not start again
	Role    string          `json:"role"`
	Term    consensus.Term  `json:"term"`
	Vote    memberID        `json:"vote"`
	Leader  memberID        `json:"leader"`
	Commit  consensus.Index `json:"commit"`
	Applied consensus.Index `json:"applied"`
	Durable consensus.Index `json:"durable"`
	Log     []LogEntry      `json:"log"` // the end of it
	Config  ConfigState     `json:"config"`
	Counts  []Count         `json:"counts,omitempty"`
}

// LogEntry is an entry of a log, in a word.
type LogEntry struct {
	Index consensus.Index `json:"i"`
	Term  consensus.Term  `json:"t"`
	What  string          `json:"w"` // "w3", "C7", "no-op"
}

// ConfigState is the configuration in force at a member.
type ConfigState struct {
	Name      string     `json:"name"` // "J7"
	Text      string     `json:"text"` // "{1,2,3|1,4,5}"
	Voters    []memberID `json:"voters"`
	Outgoing  []memberID `json:"outgoing,omitempty"`
	Learners  []memberID `json:"learners,omitempty"`
	Committed bool       `json:"committed,omitempty"`
	Settled   bool       `json:"settled,omitempty"`
}

// Flight is a message on its way.
type Flight struct {
	From    memberID `json:"f"`
	To      memberID `json:"t"`
	Sent    int64    `json:"s"`
	Arrived int64    `json:"a"` // zero: it is lost, or still on its way at the end
	Lost    bool     `json:"l,omitempty"`
	Kind    string   `json:"k"` // "change", "append", "ack", "vote", "beat", "offer" or "other"
	What    string   `json:"w"`
}

// recorder fills a Tape while the world runs. It changes nothing and draws nothing.
type recorder struct {
	w     *world // nil: nothing is recorded
	tape  Tape
	last  []MemberState
	cut   [][]memberID
	fresh bool // the journal has a record that no frame shows
}

// record makes the world keep a Tape.
func (w *world) record() { w.recorder.w = w }

// immediate are the kinds of records that script and faults write while no event runs: each gets a frame of its own.
func immediate(kind Kind) bool {
	switch kind {
	case KindFault, KindCrash, KindRestart, KindOff, KindRequest:
		return true
	}
	return false
}

// noted is called for each record of the journal.
func (r *recorder) noted(rec *Record) {
	if r.w == nil {
		return
	}
	rec.frame = len(r.tape.Frames)
	r.fresh = true
	if immediate(rec.Kind) || rec.Kind == KindNote && rec.Member == consensus.NoMember {
		r.capture()
	}
}

// capture adds a frame if something has changed since the last one.
func (r *recorder) capture() {
	if r.w == nil || r.w.journal.silent {
		return
	}
	if len(r.tape.Frames) == maxFrames {
		if r.fresh {
			r.tape.LeftOut++
		}
		r.fresh = false
		return
	}
	f := Frame{At: int64(r.w.Now() - r.w.origin)}
	for i, m := range r.w.members {
		if len(r.last) > i && !m.touched {
			continue
		}
		m.touched = false
		state := m.state()
		switch {
		case len(r.last) <= i:
			r.last = append(r.last, state)
		case reflect.DeepEqual(&state, &r.last[i]):
			continue
		}
		r.last[i] = state
		f.Changed = append(f.Changed, state)
	}
	if len(f.Changed) == 0 && !r.fresh && reflect.DeepEqual(r.cut, r.w.net.groups) {
		return
	}
	r.cut = slices.Clone(r.w.net.groups)
	f.Groups = r.cut
	r.tape.Frames, r.fresh = append(r.tape.Frames, f), false
}

// finish returns the tape of a run that has ended, or nil if none was asked for.
func (r *recorder) finish() *Tape {
	if r.w == nil {
		return nil
	}
	r.capture()
	for i := range r.w.journal.records {
		a := r.w.journal.records[i].Arrow
		switch {
		case a == nil || a.From == a.To:
		case len(r.tape.Flights) == maxFlights:
			r.tape.LeftOut++
		default:
			r.tape.Flights = append(r.tape.Flights, Flight{
				From: a.From, To: a.To, Sent: int64(a.Sent), Arrived: int64(a.Arrived), Lost: a.Lost,
				Kind: a.class(), What: a.What,
			})
		}
	}
	return &r.tape
}

// class groups kinds of messages by what they do for a change.
func (a *Arrow) class() string {
	switch a.kind {
	case consensus.MsgAppend:
		if a.carries {
			return "change"
		}
		return "append"
	case consensus.MsgAppendReply:
		return "ack"
	case consensus.MsgPreVote, consensus.MsgPreVoteReply, consensus.MsgVote, consensus.MsgVoteReply, consensus.MsgTimeoutNow:
		return "vote"
	case consensus.MsgHeartbeat, consensus.MsgHeartbeatReply:
		return "beat"
	case consensus.MsgRecord, consensus.MsgRecorded, consensus.MsgFastPropose, consensus.MsgFast:
		return "offer"
	}
	return "other"
}

// state describes a member for a frame.
func (m *member) state() MemberState {
	s := &m.status
	names := &m.w.names
	state := MemberState{
		ID: m.id, Up: m.running(), Gone: m.dead, Role: s.Role.String(), Term: s.Term, Vote: s.Vote, Leader: s.Leader,
		Commit: s.Commit, Applied: s.Applied, Durable: s.Durable, Counts: m.counts(),
	}
	if !m.running() {
		state.Role, state.Term, state.Vote = "down", m.disk.hard.Term, m.disk.hard.Vote
		state.Commit, state.Applied = m.disk.hard.Commit, m.store.position.Index
		state.Durable = m.logBase + consensus.Index(len(m.log))
	}
	for _, e := range m.log[max(0, len(m.log)-tapeEntries):] {
		state.Log = append(state.Log, LogEntry{Index: e.Index, Term: e.Term, What: names.word(&e)})
	}
	if c := &s.Config; len(c.Members) > 0 {
		state.Config = ConfigState{
			Name: names.short(s.ConfigID, c), Text: drawConfig(c), Voters: slices.Clone(c.Voters),
			Outgoing: slices.Clone(c.Outgoing),
			Learners: slices.Concat(c.Learners, c.LearnersNext), Committed: s.ConfigCommitted, Settled: s.ConfigSettled,
		}
	}
	return state
}

// word is the content of an entry in a word.
func (n *names) word(e *entry) string {
	switch {
	case e.Kind == consensus.EntryCommand:
		return numberOf(e.Proposal)
	case e.Kind == consensus.EntryAbort:
		return "no " + numberOf(e.Proposal)
	case settles(e):
		return "in force"
	case isConfig(*e):
		short, _ := n.logged(consensus.ConfigID{Index: e.Index, Term: e.Term})
		return short
	}
	return "no-op"
}
