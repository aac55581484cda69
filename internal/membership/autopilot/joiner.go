package autopilot

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// Joiner decides what a process does that asks members, one after the other, to let it join: whom it asks next, when it pauses
// and when it gives up. It has no clock and asks no member itself.
type Joiner struct {
	members  int
	at       int
	failures []error // of this round
}

// JoinMove is what a process that joins does next.
type JoinMove uint8

const (
	JoinAsk   JoinMove = iota // ask Joiner.Asks
	JoinPause                 // all members were asked: pause, and ask Joiner.Asks again
	JoinDone                  // begin, as the member that the answer names
	JoinEnd                   // no repetition cures what Joiner.Failure says
)

// NewJoiner returns one that asks so many members, and the first of them first.
func NewJoiner(members int) *Joiner { return &Joiner{members: members} }

// Asks is the number of the member to ask, from zero.
func (j *Joiner) Asks() int { return j.at }

// Heard takes what asking that member gave. The first answer counts, and so does the first refusal that every member would
// give: one that is not passing.
func (j *Joiner) Heard(err error, passing bool) JoinMove {
	if j.at == 0 {
		j.failures = nil
	}
	switch {
	case err == nil:
		return JoinDone
	case !passing:
		j.failures = []error{err}
		return JoinEnd
	}
	j.failures = append(j.failures, err)
	if j.at = (j.at + 1) % j.members; j.at > 0 {
		return JoinAsk
	}
	return JoinPause
}

// Failure is what was said in the last round.
func (j *Joiner) Failure() error { return errors.Join(j.failures...) }

// Heard takes what the leader said, and reports whether it is asked no more: else the job that it named is waited for.
func (q *JoinQuestion) Heard(step *JoinStep, err error) (done bool) {
	if err != nil || step.Ready {
		return true
	}
	q.Job = step.Job
	return false
}

// JoinPasses reports whether an error of Requests.Join is one of the moment, so that it is worth asking again.
func JoinPasses(err error) bool {
	var refused *membership.RefusedError
	if errors.As(err, &refused) {
		switch refused.Reason {
		case consensus.ReasonNoLeader, consensus.ReasonBusy, consensus.ReasonStaleConfig, consensus.ReasonChangePending,
			consensus.ReasonQuorumLost:
			return true
		}
	}
	for _, passing := range []error{membership.ErrTooManyJobs, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
