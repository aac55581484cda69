package shell

import (
	"time"

	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/sim/dice"
)

// loop gives the loop of the lanes its turns, and reports each step to the checkers.
type loop struct {
	*Life
	lanes    *lanes.Lanes
	stepping bool
	timer    timer
	stepped  func() // called after each step
}

func (l *loop) wake(d time.Duration) {
	if l.stepping || !l.Runs() {
		return
	}
	l.stepping = true
	l.After(d, l.step)
}

// begin starts the ticks.
func (l *loop) begin() { l.After(dice.Between(l.Rng, 0, l.Pace.Tick), l.tick) }

func (l *loop) tick() {
	l.After(l.Period, l.tick)
	l.wake(l.Pace.Loop)
}

func (l *loop) step() {
	l.stepping = false
	inputs, core := l.lanes.Take(), l.lanes.Node().Replica()
	l.Counts.Steps++
	from := core.Term()
	for i := range inputs {
		if received, ok := inputs[i].(raft.Receive); ok {
			l.Suite.Offers.Came(l.ID, l.Now(), &received.Message)
			l.Suite.SentOnce.Came(&received.Message)
		}
	}
	next, later, more := l.lanes.Step(inputs)
	if late := l.Suite.Offers.Judge(l.ID, l.Now()); late != "" {
		l.Suite.Report("offer-wait", late)
	}
	if l.lanes.Node().Gathering() {
		l.Counts.Gathered++
	}
	l.timer.reset(next, later)
	l.stepped()
	l.Suite.Committed(l.ID, from, core.Term(), core.Commit())
	l.Suite.Stepped(l.ID)
	if more {
		l.wake(max(l.Pace.Loop, time.Millisecond))
	}
}
