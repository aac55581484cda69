package lanes

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/node"
)

// answering is the lane that evaluates what this member, as a leader, answers before the commit: replies of the fast path.
type answering struct {
	queue Queue[raft.Evaluation]
	spare []raft.Evaluation
}

// Answer answers all that is queued.
func (l *Lanes) Answer() {
	a := &l.answers
	a.spare = a.queue.Take(a.spare)
	if answers := l.evaluate(a.spare); len(answers) > 0 {
		l.host.Deliver(answers)
	}
}

// evaluate leaves out what the store can not tell, and everything once this member is corrupt.
func (l *Lanes) evaluate(waiting []raft.Evaluation) (answers []consensus.Message) {
	machine, release := l.options.Stores.Machine()
	defer release()
	for i := range waiting {
		if l.host.Corrupt() {
			break
		}
		if answer, known := node.Answer(&waiting[i], machine); known {
			answers = append(answers, answer)
		}
	}
	return answers
}
