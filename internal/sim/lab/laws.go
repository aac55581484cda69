package lab

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Breach names a law that was broken.
type Breach string

// The laws.
const (
	BreachTwoLeaders   Breach = "two leaders in one term"
	BreachOverwritten  Breach = "a committed entry differs"
	BreachIncomplete   Breach = "a leader lacks a committed entry"
	BreachLostWrite    Breach = "an acknowledged write is lost"
	BreachTwoChanges   Breach = "two changes at once"
	BreachTakenBack    Breach = "a change that was done is taken back"
	BreachUnavailable  Breach = "the cluster cannot go on"
	BreachAssertion    Breach = "a member's own assertion failed"
	BreachOtherMembers Breach = "the members disagree at the end"
)

// Violation is a broken law, with a description.
type Violation struct {
	At     time.Duration
	Breach Breach
	Detail string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s", v.Breach, v.Detail) }

// laws watches every step of every member.
type laws struct {
	w          *world
	leaders    []ledTerm
	committed  []entry           // by index from 1; the zero entry where no member has reported a commit yet
	differ     []consensus.Index // indexes at which different committed entries were seen
	violations []Violation
}

type ledTerm struct {
	term   consensus.Term
	leader memberID
}

func (l *laws) breach(at memberID, breach Breach, format string, args ...any) {
	v := Violation{At: l.w.Now() - l.w.origin, Breach: breach, Detail: fmt.Sprintf(format, args...)}
	for _, before := range l.violations {
		if before.Breach == v.Breach && before.Detail == v.Detail {
			return
		}
	}
	l.violations = append(l.violations, v)
	l.w.journal.add(KindBreach, at, "%v", v)
}

func (l *laws) check(m *member, out *raft.Output) {
	for index := m.known + 1; index <= m.status.Commit; index++ {
		if e, ok := m.at(index); ok {
			l.commits(m, &e)
		}
	}
	m.known = max(m.known, m.status.Commit)
	for _, e := range out.Events {
		switch e := e.(type) {
		case raft.BecameLeader:
			l.leads(m, e.Term)
		case raft.ConfigProposed:
			l.proposes(m, e.ID)
		}
	}
}

// leads checks that a term has one leader, and that the leader holds all entries that were committed in earlier terms.
func (l *laws) leads(m *member, term consensus.Term) {
	at := slices.IndexFunc(l.leaders, func(led ledTerm) bool { return led.term == term })
	if at >= 0 && l.leaders[at].leader != m.id {
		l.breach(m.id, BreachTwoLeaders, "%v and %v both lead term %d", l.leaders[at].leader, m.id, term)
	}
	if at < 0 {
		l.leaders = append(l.leaders, ledTerm{term, m.id})
	}
	for i := range l.committed {
		e := &l.committed[i]
		if e.Index == 0 || e.Index <= m.logBase || e.Term >= term {
			continue
		}
		if got, _ := m.at(e.Index); got.Position() != e.Position() {
			l.breach(m.id, BreachIncomplete, "%v leads term %d without entry %s", m.id, term, l.w.names.entry(e))
			return
		}
	}
}

// commits checks that no member has committed another entry at this index.
func (l *laws) commits(m *member, e *entry) {
	for len(l.committed) <= int(e.Index) {
		l.committed = append(l.committed, entry{})
	}
	before := &l.committed[e.Index]
	if before.Index == 0 {
		*before = *e
		l.takesBack(m, e)
		return
	}
	if before.Position() != e.Position() || string(before.Payload) != string(e.Payload) {
		if slices.Contains(l.differ, e.Index) {
			return // once is enough, whatever other members differ
		}
		l.differ = append(l.differ, e.Index)
		l.breach(m.id, BreachOverwritten, "%v commits %s where %s was committed", m.id,
			l.w.names.entry(e), l.w.names.entry(before))
	}
}

// takesBack checks that no change is taken back that was reported to the operator as done.
func (l *laws) takesBack(m *member, e *entry) {
	if change, ok := changeOf(e); ok && change.Abort && l.w.operator.doneAt > 0 {
		l.breach(m.id, BreachTakenBack, "%v commits %s", m.id, l.w.names.entry(e))
	}
}

// proposes checks that the configuration before the new one has committed, unless the new one aborts it.
func (l *laws) proposes(m *member, id consensus.ConfigID) {
	at := len(m.log) - 1
	for at >= 0 && m.log[at].Index > id.Index {
		at--
	}
	if at < 0 {
		return
	}
	if change, ok := changeOf(&m.log[at]); !ok || change.Abort {
		return
	}
	for at--; at >= 0 && !isConfig(m.log[at]); at-- {
	}
	if at < 0 {
		return
	}
	before := m.log[at]
	if int(before.Index) >= len(l.committed) || l.committed[before.Index].Position() != before.Position() {
		l.breach(m.id, BreachTwoChanges, "%v logs a change while %s has not committed", m.id, l.w.names.entry(&before))
	}
}

// finish checks, when no event is left, that acknowledged writes are in the log of the leader, or of the member that would be
// elected, and that the serving members agree on the configuration.
func (l *laws) finish() {
	last := l.w.mostAdvanced()
	if last == nil {
		l.breach(consensus.NoMember, BreachUnavailable, "nobody runs")
		return
	}
	var lost []string
	for _, a := range l.w.clients.acked {
		if !last.keeps(a.number) {
			lost = append(lost, fmt.Sprintf("w%d", a.number))
		}
	}
	if len(lost) > 0 {
		l.breach(last.id, BreachLostWrite, "%s not in the log of %v", listed(lost), last.id)
	}
	if last.status.Role != raft.Leader {
		return
	}
	agree := 0
	for _, id := range last.status.Config.Voters {
		if m := l.w.member(id); m.status.ConfigID == last.status.ConfigID {
			agree++
		}
	}
	if agree <= len(last.status.Config.Voters)/2 {
		l.breach(last.id, BreachOtherMembers, "only %d of %d voters follow %s", agree, len(last.status.Config.Voters),
			l.w.names.full(last.status.ConfigID, &last.status.Config))
	}
}

// mostAdvanced returns the leader, or the running member that would win an election.
func (w *world) mostAdvanced() *member {
	if leader := w.leader(); leader != nil {
		return leader
	}
	var best *member
	for _, m := range w.members {
		if m.running() && (best == nil || best.lastPosition().Before(m.lastPosition())) {
			best = m
		}
	}
	return best
}

func (m *member) lastPosition() position {
	return position{Index: m.status.LastIndex, Term: m.status.LastTerm}
}

// keeps reports whether a write is applied here, or in the log.
func (m *member) keeps(number uint64) bool {
	return slices.Contains(m.store.writes, number) || slices.ContainsFunc(m.log, func(e entry) bool {
		return e.Kind == consensus.EntryCommand && e.Proposal.Sequence == number
	})
}

// listed shortens a long list.
func listed(words []string) string {
	if len(words) > 4 {
		return fmt.Sprintf("%s and %d more", words[0], len(words)-1)
	}
	text := ""
	for i, word := range words {
		if i > 0 {
			text += ", "
		}
		text += word
	}
	return text
}
