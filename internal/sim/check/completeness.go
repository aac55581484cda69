package check

import "github.com/quorate/quorate/internal/consensus"

// elected checks leader completeness: the log of a new leader holds every entry that was committed in an earlier term. By Log
// Matching one comparison is enough: that of the last such entry.
func (l *logs) elected(s *Suite, member consensus.MemberID, term consensus.Term) {
	w := l.of(member)
	for index := consensus.Index(len(l.chosen)); index > w.base.Index; index-- {
		want := l.chosenAt(index)
		if s.commits.in(index) >= term {
			continue // committed in this term or a later one: this leader need not hold it
		}
		if got, ok := w.term(index); !ok || got != want {
			s.report("leader-completeness", "member %v leads term %d with a log up to %d, but %d.%d was committed, not %d.%d",
				member, term, w.last(), index, want, index, got)
		}
		return
	}
}
