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
	for i := range int8(maxMembers) {
		if has(set, i) {
			b.WriteString(memberName(i))
		}
	}
	return b.String()
}

func (c config) String() string {
	s := memberNames(c.Old)
	if c.joint() {
		s += "|" + memberNames(c.New)
	}
	if c.Learners != 0 {
		s += "+" + memberNames(c.Learners)
	}
	return s
}

func (e *entry) String() string {
	switch e.Kind {
	case noopEntry:
		return fmt.Sprintf("noop/%d", e.Term)
	case slowEntry:
		return fmt.Sprintf("P%d slow/%d", e.Proposal, e.Term)
	case exactEntry:
		return fmt.Sprintf("P%d@%d/%d", e.Proposal, e.Revision, e.Term)
	case configEntry:
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

func (s *state) poolString(pool uint16) string {
	var o []string
	for i := range maxAttempts {
		if pool>>i&1 == 1 {
			o = append(o, fmt.Sprintf("P%d@%d/%d", s.A[i].Proposal, s.A[i].Revision, s.A[i].Term))
		}
	}
	return "{" + strings.Join(o, " ") + "}"
}

var roleNames = [...]string{"follower", "candidate", "leader"}

func (s *state) print(out io.Writer, members int) {
	for i := range members {
		x := &s.M[i]
		fmt.Fprintf(out, "      %s term %d %s commit %d applied %d log %s pool %s\n", memberName(int8(i)), x.Term,
			roleNames[x.Role], x.Commit, x.Applied, &x.Log, s.poolString(x.Pool))
	}
	for p := range int8(maxProposals) {
		if has(s.Reported, p) {
			fmt.Fprintf(out, "      P%d reported at revision %d, result %v\n", p, s.Revision[p], s.Result[p])
		}
	}
}

// sentences say what an action is; %a, %b, %c and %d are its members or numbers by capital letter or digit.
var sentences = [actionKinds]string{
	campaign: "A campaigns", vote: "A hears the vote request of B", win: "A wins with the votes of M",
	preVote: "A asks B for a pre-vote", receive: "B receives the log of term a up to index c",
	commit: "leader A commits up to index c",
	infer:  "A infers that index c has committed", apply: "A applies up to index c",
	snapshot: "B is sent the store of leader A at index c",
	crash:    "A crashes and restarts with its store at c, commit index d",
	send:     "Pb is sent with revision c (as D sees term and config, slot a)", record: "A accepts the record of slot b",
	propose: "leader A receives the proposal of slot b", evaluate: "leader A evaluates slot b and answers",
	decide: "slot a succeeds on the fast path", answer: "A answers for Pb, which it has applied",
	answerAbort: "A answers that Pb was aborted", orphan: "A reports the record of slot b to leader C",
	change: "leader A appends configuration b", transfer: "leader A begins to hand leadership to B",
	timeoutNow: "leader A tells its heir to campaign", tick: "a tick passes",
	round: "leader A begins a round of heartbeats",
	echo:  "A answers a heartbeat of leader B", ask: "a read begins at A", take: "the leader takes the read index",
	hand: "the leader hands out the read index",
	word: "the leader's unconfirmed index reaches the reader",
	tell: "A answers the reader's question", confirm: "the reader confirms by itself (way b)",
	serve:   "the reader serves the read",
	survive: "A goes on alone; what is left of M is compared",
	lose:    "A comes back, its disk ends at index c",
}

func (a action) String() string {
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
		case "b":
			fmt.Fprint(&b, a.B)
		case "c":
			fmt.Fprint(&b, a.C)
		case "d":
			fmt.Fprint(&b, a.D)
		case "a":
			if a.Kind == tick || a.Kind == ask || a.Kind == preVote || a.Kind == round || a.Kind == echo {
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
	if a.Kind == receive && a.D == 1 {
		b.WriteString(" and the commit index")
	}
	return b.String()
}

// outcome says what an action led to.
func outcome(before, s *state, a action) string {
	switch a.Kind {
	case propose:
		l := &s.M[a.A].Log
		e := l.at(l.N)
		if e.Kind == exactEntry {
			return fmt.Sprintf(": fast, %s at index %d, result %v", e, l.N, s.A[a.B].Result)
		}
		return fmt.Sprintf(": %s at index %d", e, l.N)
	case orphan:
		if l := &s.M[a.C].Log; l.N > before.M[a.C].Log.N {
			return fmt.Sprintf(": %s at index %d", l.at(l.N), l.N)
		}
	case vote:
		if has(s.M[a.B].Votes, a.A) {
			return " and grants it, carrying " + s.poolString(s.M[a.B].Held[a.A])
		}
		return " and refuses"
	case preVote:
		return fmt.Sprintf(": commit index %d", s.M[a.B].Commit)
	case win, survive:
		return ": log " + s.M[a.A].Log.String()
	case receive, snapshot:
		return ": log " + s.M[a.B].Log.String() + " pool " + s.poolString(s.M[a.B].Pool)
	case record:
		return fmt.Sprintf(" (P%d@%d)", s.A[a.B].Proposal, s.A[a.B].Revision)
	case decide:
		p := s.A[a.A].Proposal
		return fmt.Sprintf(": P%d reported at revision %d, result %v", p, s.Revision[p], s.Result[p])
	case answer:
		return fmt.Sprintf(": revision %d, result %v", s.Revision[a.B], s.Result[a.B])
	case take:
		return fmt.Sprintf(": %d", s.R.Index)
	case confirm:
		return fmt.Sprintf(": index %d", s.R.Index)
	}
	return ""
}

// Print writes a finding as a trace that can be read.
func (f *Finding) Print(out io.Writer) {
	m := f.model
	sc := m.scenario
	fmt.Fprintf(out, "  cluster %s, walk %d, %d steps; keys", sc.Name, f.Walk, len(f.trace))
	for p := range sc.Proposals {
		fmt.Fprintf(out, " P%d:%s", p, [...]string{"-", "a", "b", "ab"}[sc.Footprint[p]&3])
	}
	if len(sc.Configs) > 1 {
		fmt.Fprintf(out, "; configurations")
		for i, c := range sc.Configs {
			fmt.Fprintf(out, " %d:%v", i, c)
		}
	}
	fmt.Fprintln(out)
	var s state
	m.begin(&s)
	for i, a := range f.trace {
		before := s
		m.step(&s, a)
		fmt.Fprintf(out, "  %2d. %s%s\n", i+1, a, outcome(&before, &s, a))
	}
	fmt.Fprintf(out, "   => %s\n", f.Broken)
	s.print(out, sc.Members)
}
