package shell

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/node"
	"github.com/quorate/quorate/internal/sim/dice"
)

// loop steps the node: with the ticks that are due, and with all that was left for it.
type loop struct {
	*Life
	node     *node.Node
	ticks    node.Ticks // by the machine's clock
	inbox    []raft.Input
	stepping bool

	timer   timer
	mute    func() bool // time does not pass for the core
	stepped func()      // is told of each step
}

// Put leaves inputs for the next step.
func (l *loop) Put(inputs ...raft.Input) {
	l.inbox = append(l.inbox, inputs...)
	l.Wake()
}

// Wake makes a step happen soon.
func (l *loop) Wake() { l.wake(l.Pace.Loop) }

func (l *loop) wake(d time.Duration) {
	if l.stepping || !l.Runs() {
		return
	}
	l.stepping = true
	l.After(d, l.step)
}

// begin makes time pass.
func (l *loop) begin() { l.After(dice.Between(l.Rng, 0, l.Pace.Tick), l.tick) }

func (l *loop) tick() {
	l.After(l.Period, l.tick)
	l.Wake()
}

func (l *loop) step() {
	l.stepping = false
	due := l.ticks.Due(l.Clock())
	if l.mute() {
		due = nil
	}
	inputs := append(due, l.inbox...)
	l.inbox = nil
	l.Counts.Steps++
	from := l.node.Replica().Term()
	for i := range inputs {
		if received, ok := inputs[i].(raft.Receive); ok {
			l.Suite.Offers.Came(l.ID, l.Now(), &received.Message)
			l.Suite.SentOnce.Came(&received.Message)
		}
	}
	l.node.Step(l.Clock(), inputs...)
	if late := l.Suite.Offers.Judge(l.ID, l.Now()); late != "" {
		l.Suite.Report("offer-wait", late)
	}
	if l.node.Gathering() {
		l.Counts.Gathered++
	}
	l.timer.reset(l.node.Next())
	l.stepped()
	l.Suite.Committed(l.ID, from, l.node.Replica().Term(), l.node.Replica().Commit())
	l.Suite.Stepped(l.ID)
	if l.node.Waiting() {
		l.wake(max(l.Pace.Loop, time.Millisecond))
	}
}

// taken is told of what the core takes, in order.
func (l *loop) taken(inputs []raft.Input) {
	l.Suite.Stepping(l.ID)
	for i := range inputs {
		switch input := inputs[i].(type) {
		case raft.Receive:
			l.Suite.Offers.Took(l.ID, &input.Message)
			if m := &input.Message; m.Kind == consensus.MsgPropose || m.Kind == consensus.MsgFastPropose {
				l.Suite.Given(l.ID, m.Proposals)
			}
		case raft.Propose:
			l.Suite.Given(l.ID, input.Proposals)
		}
	}
}
