package lanes

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/node"
)

// answering is the lane that evaluates the answers that this member gives as a leader before the commit: replies of the fast
// path.
type answering struct {
	queue Queue[raft.Evaluation]
	spare []raft.Evaluation
}

// Answer gives all queued answers.
func (l *Lanes) Answer() {
	a := &l.answers
	a.spare = a.queue.Take(a.spare)
	if answers := l.evaluate(a.spare); len(answers) > 0 {
		l.host.Deliver(answers)
	}
}

// evaluate leaves out the answers that the store does not know, and all answers once this member is corrupt.
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
