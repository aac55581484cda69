package member

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

const (
	// careInterval is how often a leader looks after its members, unless their clocks are so fast that it is a long time.
	careInterval = time.Second
	// carePatience bounds one attempt to do something about them. It is shorter than the pause after which a leader forgets
	// what it has seen.
	carePatience = 5 * time.Second
)

// adviceBoard shows the last advice. The zero value shows none.
type adviceBoard struct{ text atomic.Pointer[string] }

// Advice says in a sentence what is wrong with the voters, and what would cure it or why nothing is done. It is empty if
// all is well, if automatic care is off, and at members that do not lead.
func (m *Member) Advice() string {
	if text := m.advice.text.Load(); text != nil {
		return *text
	}
	return ""
}

// keeper cares for the members while this one leads. What it remembers is of one term: the next leader watches anew.
type keeper struct {
	m      *Member
	term   consensus.Term
	memory membership.Watchfulness
	told   map[string]bool // what the diary has, since all was well
}

// careForMembers is the goroutine that does it.
func (m *Member) careForMembers() error {
	k := keeper{m: m}
	return lookEvery(m.stopping, min(careInterval, 2*m.electionTimeout()), k.look)
}

func (k *keeper) look() {
	m := k.m
	ctx, cancel := context.WithTimeout(m.stopping, carePatience)
	defer cancel()
	view, term, err := m.viewInTerm(ctx)
	if err != nil || term != k.term {
		*k = keeper{m: m, term: term}
	}
	if err != nil { // it does not lead
		m.advice.text.Store(nil)
		return
	}
	advice := membership.Care(&m.options.Care, &view, m.Jobs(), &k.memory)
	text := advice.String()
	m.advice.text.Store(&text)
	k.tell(text)
	if m.options.Care.Mode != membership.ModeAuto {
		return
	}
	switch {
	case advice.Cancel != 0:
		_, err = m.CancelJob(ctx, advice.Cancel)
	case advice.Spec != nil:
		err = k.act(ctx)
	}
	if err != nil && m.stopping.Err() == nil {
		k.tell("nothing could be done: " + err.Error())
	}
}

// tell writes what is new into the diary.
func (k *keeper) tell(text string) {
	if text == "" {
		k.told = nil
		return
	}
	if k.told[text] {
		return
	}
	if k.told == nil {
		k.told = map[string]bool{}
	}
	k.told[text] = true
	k.m.logger.Warn("automatic care", "message", text)
}

// act starts what is advised when everything that was acknowledged is taken into account: another leader may have done it.
func (k *keeper) act(ctx context.Context) error {
	m := k.m
	view, _, err := pilotPorts{m}.FreshView(ctx)
	if err != nil {
		return err
	}
	advice := membership.Care(&m.options.Care, &view, m.Jobs(), &k.memory)
	if advice.Spec == nil {
		return nil
	}
	job, err := m.StartJob(ctx, advice.Job, advice.Spec)
	if err == nil {
		m.logger.Info("automatic care started a job", "job", job.ID.String())
	}
	return err
}
