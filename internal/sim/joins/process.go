package joins

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/sim/routines"
)

// The pauses of the real process (internal/server/join_url.go).
const (
	Attempt = 15 * time.Second // for one member's answer
	limit   = 2 * time.Minute  // after which a process without an answer ends
	pause   = time.Second
)

// Process is a process that joins, with the ports to its machine.
type Process struct {
	Members int // number of members that it can ask
	// Ask asks one member. answered may be called late, or never.
	Ask   func(member int, answered func(autopilot.JoinAnswer, error))
	After func(d time.Duration, f func())
	// Joined is called with the identity, Refused with the refusal, GaveUp if no member has answered.
	Joined  func(autopilot.JoinAnswer)
	Refused func(error)
	GaveUp  func()
}

// Run asks until there is an answer or a refusal, or the limit has passed.
func (p *Process) Run(wait routines.Wait) {
	late := false
	p.After(limit, func() { late = true })
	joiner := autopilot.NewJoiner(p.Members)
	for {
		answer, err := autopilot.JoinAnswer{}, error(context.DeadlineExceeded)
		if !wait(func(resume func()) {
			p.Ask(joiner.Asks(), func(a autopilot.JoinAnswer, e error) {
				answer, err = a, e
				resume()
			})
			p.After(Attempt, resume)
		}) {
			return
		}
		switch joiner.Heard(err, passes(err)) {
		case autopilot.JoinDone:
			p.Joined(answer)
			return
		case autopilot.JoinEnd:
			p.Refused(joiner.Failure())
			return
		case autopilot.JoinPause:
			if late {
				p.GaveUp()
				return
			}
			if !wait(func(resume func()) { p.After(pause, resume) }) {
				return
			}
		}
	}
}

// passes reports whether an error is temporary. Members report the errors that are not; of all others a real process learns
// only that the call failed.
func passes(err error) bool {
	var (
		blocked *membership.BlockedError
		refused *membership.RefusedError
		spec    *membership.SpecError
		address *membership.AddressError
	)
	final := errors.As(err, &blocked) || errors.As(err, &refused) || errors.As(err, &spec) || errors.As(err, &address) ||
		errors.Is(err, membership.ErrAlreadyStarted) || errors.Is(err, membership.ErrJobFailed)
	return !final || autopilot.JoinPasses(err)
}

// Member is a member that a process asks, with its ports.
type Member struct {
	// AtLeader asks the leader, whichever member it is. answered may be called late, or never.
	AtLeader func(q autopilot.JoinQuestion, answered func(autopilot.JoinStep, error))
	// NotLeader reports whether the member was not the leader; then the leader is asked again.
	NotLeader func(error) bool
	After     func(d time.Duration, f func())
	// Poll is the time to the next question: a member asks after each change, and each second.
	Poll func() time.Duration
}

// Answer asks the leader until the process is a member, as member.Membership does. It returns false if the routine ended
// before.
func (m *Member) Answer(wait routines.Wait, r autopilot.JoinRequest) (answer autopilot.JoinAnswer, err error, ok bool) {
	if err := r.Validate(); err != nil {
		return answer, err, true
	}
	q := autopilot.JoinQuestion{JoinRequest: r}
	for {
		var step autopilot.JoinStep
		if !wait(func(resume func()) {
			m.AtLeader(q, func(s autopilot.JoinStep, e error) {
				step, err = s, e
				resume()
			})
		}) {
			return answer, nil, false
		}
		if !m.NotLeader(err) && q.Heard(&step, err) {
			return step.JoinAnswer, err, true
		}
		if !wait(func(resume func()) { m.After(m.Poll(), resume) }) {
			return answer, nil, false
		}
	}
}
