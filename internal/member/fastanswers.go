package member

import (
	"context"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/node"
)

// fastAnswers evaluates what this member, as a leader, answers before it has committed: replies of the fast path.
type fastAnswers struct {
	waiting queue[raft.Evaluation]
	stores  *datadir.Stores
	corrupt func() bool // it must not answer from its state
	deliver func(messages []consensus.Message)
}

// run answers what is queued until ctx ends.
func (f *fastAnswers) run(ctx context.Context) error {
	var spare []raft.Evaluation
	for {
		select {
		case <-f.waiting.signal:
		case <-ctx.Done():
			return nil
		}
		spare = f.waiting.take(spare)
		if answers := f.evaluate(spare); len(answers) > 0 {
			f.deliver(answers)
		}
	}
}

// evaluate leaves out what the store can not tell, and everything once this member is corrupt.
func (f *fastAnswers) evaluate(waiting []raft.Evaluation) (answers []consensus.Message) {
	machine, release := f.stores.Machine()
	defer release()
	for i := range waiting {
		if f.corrupt() {
			break
		}
		if answer, known := node.Answer(&waiting[i], machine); known {
			answers = append(answers, answer)
		}
	}
	return answers
}
