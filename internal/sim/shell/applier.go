package shell

import (
	"errors"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/sim/dice"
)

// applying gives the apply lane its turns: it does the queued work a drawn time later.
type applying struct {
	*Life
	lanes *lanes.Lanes
	busy  bool
}

func (a *applying) begin() {
	if a.busy || !a.lanes.Applies() {
		return
	}
	a.busy = true
	a.After(dice.Exponential(a.Rng, a.Pace.Apply), a.run)
}

// hungLook is how often a store that hangs is looked at.
const hungLook = 50 * time.Millisecond

// run does the work that was queued when it began.
func (a *applying) run() {
	if a.Hangs() {
		a.After(hungLook, a.run)
		return
	}
	a.busy = false
	if err := a.lanes.Apply(); err != nil {
		a.Fail(err)
		return
	}
	a.begin()
}

// applied is the state machine of a process.
type applied struct {
	*Life
	data    *datadir.Data
	altered func([]consensus.Entry) []consensus.Entry // a negative control: the entries that are applied in place of a batch
}

// apply applies a batch as a member does whose callers wait for all results, and reads again the parts that a repeated entry
// left out. Parts whose history is compacted stay out.
func (a *applied) apply(batch []consensus.Entry) ([]kv.Result, error) {
	if a.altered != nil {
		batch = a.altered(batch)
	}
	results, err := a.data.Machine.ApplyFor(batch, func(consensus.ProposalID) kv.Account { return unlimited{} })
	for i := range results {
		if command, err := kv.DecodeCommand(batch[i].Payload); err == nil {
			a.recall(&command, &results[i])
		}
	}
	return results, err
}

func (a *applied) recall(command *kv.Command, result *kv.Result) {
	if err := a.data.Machine.Recall(command, result, unlimited{}); err != nil && !errors.Is(err, kv.ErrResultGone) {
		a.Fail(err)
	}
}

// unlimited is an account without a limit.
type unlimited struct{}

func (unlimited) Take(int) error { return nil }
func (unlimited) Walk(int) error { return nil }
func (unlimited) Release()       {}
