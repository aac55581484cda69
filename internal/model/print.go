package model

import (
	"fmt"
	"io"
	"strings"
)

func memberName(i int8) string {
	if i < 0 {
		return "-"
	}
	return string(rune('A' + i))
}

func memberNames(set uint8) string {
	var b strings.Builder
	for i := range int8(MaxMembers) {
		if Has(set, i) {
			b.WriteString(memberName(i))
		}
	}
	return b.String()
}

func (c Config) String() string {
	s := memberNames(c.Old)
	if c.joint() {
		s += "|" + memberNames(c.New)
	}
	if c.Learners != 0 {
		s += "+" + memberNames(c.Learners)
	}
	return s
}

// payloadMark marks the second payload of a lying client.
func payloadMark(payload int8) string {
	if payload == 1 {
		return "'"
	}
	return ""
}

func (e *entry) String() string {
	switch e.Kind {
	case noopEntry:
		return fmt.Sprintf("noop/%d", e.Term)
	case slowEntry:
		return fmt.Sprintf("P%d%s slow/%d", e.Proposal, payloadMark(e.Payload), e.Term)
	case exactEntry:
		return fmt.Sprintf("P%d%s@%d/%d", e.Proposal, payloadMark(e.Payload), e.Revision, e.Term)
	case ConfigEntry:
		return fmt.Sprintf("config%d/%d", e.Proposal, e.Term)
	case abortEntry:
		return fmt.Sprintf("abort P%d/%d", e.Proposal, e.Term)
	}
	return "?"
}

func (l *journal) String() string {
	var p []string
	for i := range l.N {
		p = append(p, l.E[i].String())
	}
	return "[" + strings.Join(p, " ") + "]"
}

func (s *State) poolString(pool uint16) string {
	var o []string
	for i := range MaxAttempts {
		if pool>>i&1 == 1 {
			t := &s.A[i]
			o = append(o, fmt.Sprintf("P%d%s@%d/%d", t.Proposal, payloadMark(t.Payload), t.Revision, t.Term))
		}
	}
	return "{" + strings.Join(o, " ") + "}"
}

var roleNames = [...]string{"follower", "candidate", "leader"}

func (s *State) Print(out io.Writer, members int) {
	for i := range members {
		x := &s.M[i]
		fmt.Fprintf(out, "      %s term %d %s commit %d applied %d log %s pool %s\n", memberName(int8(i)), x.Term,
			roleNames[x.Role], x.Commit, x.Applied, &x.Log, s.poolString(x.Pool))
	}
	for p := range int8(MaxProposals) {
		if Has(s.Reported, p) {
			fmt.Fprintf(out, "      P%d reported at revision %d, result %v\n", p, s.Revision[p], s.Result[p])
		}
	}
}

// sentences describe actions; %a, %b, %c and %d are the fields, as a member's capital letter or as a number.
var sentences = [actionKinds]string{
	Campaign: "A campaigns", Vote: "A hears the vote request of B", Win: "A wins with the votes of M",
	PreVote: "A asks B for a pre-vote", Receive: "B receives the log of term a up to index c",
	Commit: "leader A commits up to index c",
	Infer:  "A infers that index c has committed", Apply: "A applies up to index c",
	Snapshot: "B is sent the store of leader A at index c",
	Crash:    "A crashes and restarts with its store at c, commit index d",
	Send:     "Pb is sent with revision c (as D sees term and config, slot a)", Record: "A accepts the record of slot b",
	Propose: "leader A receives the proposal of slot b", Evaluate: "leader A evaluates slot b and answers",
	Decide: "slot a succeeds on the fast path", Answer: "A answers for Pb, which it has applied",
	AnswerAbort: "A answers that Pb was aborted", Orphan: "A reports the record of slot b to leader C",
	Change: "leader A appends configuration b", Transfer: "leader A begins to hand leadership to B",
	TimeoutNow: "leader A tells its heir to campaign", Tick: "a tick passes",
	Round: "leader A begins a round of heartbeats",
	Echo:  "A answers a heartbeat of leader B", Ask: "a read begins at A", Take: "the leader takes the read index",
	Hand: "the leader hands out the read index",
	Word: "the leader's unconfirmed index reaches the reader",
	Tell: "A answers the reader's question", Confirm: "the reader confirms by itself (way b)",
	Serve:   "the reader serves the read",
	Survive: "A goes on alone; what is left of M is compared",
	Lose:    "A comes back, its disk ends at index c",
}

func (a Action) String() string {
	var b strings.Builder
	for _, word := range strings.SplitAfter(sentences[a.Kind], " ") {
		end := len(word)
		for end > 0 && strings.ContainsRune(" ,;)", rune(word[end-1])) {
			end--
		}
		trail := word[end:]
		switch word[:end] {
		case "A":
			b.WriteString(memberName(a.A))
		case "B":
			b.WriteString(memberName(a.B))
		case "C":
			b.WriteString(memberName(a.C))
		case "D":
			b.WriteString(memberName(a.D))
		case "M":
			b.WriteString(memberNames(a.M))
		case "Pb":
			fmt.Fprintf(&b, "P%d", a.B)
			if a.Kind == Send {
				b.WriteString(payloadMark(int8(a.M)))
			}
		case "b":
			fmt.Fprint(&b, a.B)
		case "c":
			fmt.Fprint(&b, a.C)
		case "d":
			fmt.Fprint(&b, a.D)
		case "a":
			if a.Kind == Tick || a.Kind == Ask || a.Kind == PreVote || a.Kind == Round || a.Kind == Echo {
				b.WriteString("a")
			} else {
				fmt.Fprint(&b, a.A)
			}
		default:
			b.WriteString(word)
			continue
		}
		b.WriteString(trail)
	}
	if a.Kind == Receive && a.D == 1 {
		b.WriteString(" and the commit index")
	}
	return b.String()
}

// Outcome describes the result of an action.
func Outcome(before, s *State, a Action) string {
	switch a.Kind {
	case Propose:
		l := &s.M[a.A].Log
		e := l.At(l.N)
		if e.Kind == exactEntry {
			return fmt.Sprintf(": fast, %s at index %d, result %v", e, l.N, s.A[a.B].Result)
		}
		return fmt.Sprintf(": %s at index %d", e, l.N)
	case Orphan:
		if l := &s.M[a.C].Log; l.N > before.M[a.C].Log.N {
			return fmt.Sprintf(": %s at index %d", l.At(l.N), l.N)
		}
	case Vote:
		if Has(s.M[a.B].Votes, a.A) {
			return " and grants it, carrying " + s.poolString(s.M[a.B].Held[a.A])
		}
		return " and refuses"
	case PreVote:
		return fmt.Sprintf(": commit index %d", s.M[a.B].Commit)
	case Win, Survive:
		return ": log " + s.M[a.A].Log.String()
	case Receive, Snapshot:
		return ": log " + s.M[a.B].Log.String() + " pool " + s.poolString(s.M[a.B].Pool)
	case Record:
		return fmt.Sprintf(" (P%d@%d)", s.A[a.B].Proposal, s.A[a.B].Revision)
	case Decide:
		p := s.A[a.A].Proposal
		return fmt.Sprintf(": P%d reported at revision %d, result %v", p, s.Revision[p], s.Result[p])
	case Answer:
		return fmt.Sprintf(": revision %d, result %v", s.Revision[a.B], s.Result[a.B])
	case Take:
		return fmt.Sprintf(": %d", s.R.Index)
	case Confirm:
		return fmt.Sprintf(": index %d", s.R.Index)
	}
	return ""
}
