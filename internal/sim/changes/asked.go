package changes

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Asked is the changes that operators have asked for and that have no outcome yet. A member without a leader keeps one for as
// long as it runs, so that it may come long after.
type Asked struct{ open []*asked }

type asked struct {
	leaving []consensus.MemberID // voters that are to be removed or demoted
	waits   func() bool
}

// Add notes a change. waits reports whether the process runs that was asked for it; over notes that it has an outcome.
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

// Leaving returns the voters that may leave by what has no outcome yet.
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
