package changes

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Asked are the changes that operators have requested and that have no outcome yet. A member without a leader keeps such a
// request for as long as it runs, so that the change may come long after.
type Asked struct{ open []*asked }

type asked struct {
	leaving []consensus.MemberID // voters to be removed or demoted
	waits   func() bool
}

// Add notes a requested change. waits reports whether the process that was asked still runs; over notes that the change has an
// outcome.
func (a *Asked) Add(request *consensus.ChangeRequest, waits func() bool) (over func()) {
	one := &asked{waits: waits}
	for i := range request.Steps {
		switch step := &request.Steps[i]; step.Kind {
		case consensus.ChangeRemove, consensus.ChangeDemote:
			one.leaving = append(one.leaving, step.Member.ID)
		}
	}
	a.open = append(a.open, one)
	return func() { one.waits = func() bool { return false } }
}

// Leaving returns the voters that may leave by changes without an outcome.
func (a *Asked) Leaving() map[consensus.MemberID]bool {
	a.open = slices.DeleteFunc(a.open, func(one *asked) bool { return !one.waits() })
	leaving := map[consensus.MemberID]bool{}
	for _, one := range a.open {
		for _, id := range one.leaving {
			leaving[id] = true
		}
	}
	return leaving
}
