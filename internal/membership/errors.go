package membership

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
)

var (
	// ErrChangeAborted means that a joint configuration change was aborted before it was done.
	ErrChangeAborted = errors.New("member: the change was aborted")
	// ErrJobNotFound means that no job with that id is remembered.
	ErrJobNotFound = errors.New("member: there is no such membership job; ended ones are forgotten after a while")
	// ErrTooManyJobs means that too many membership jobs wait already.
	ErrTooManyJobs = errors.New("member: too many membership jobs are waiting: cancel some, or let them end")
	// ErrAlreadyStarted answers a member that wants to join where it was started before: what it promised then is on a
	// disk that it does not have any more.
	ErrAlreadyStarted = errors.New("member: a member with these peer URLs runs, or was started before: see " +
		"`quorate member list`. If that is another machine, the peer URLs are mistyped: correct them; if it is this one, " +
		"start it with its data directory")
	// ErrJobFailed means that the job that was to add a joining member ended without it.
	ErrJobFailed = errors.New("member: the membership job ended without the new member")
)

// RefusedError is a configuration change that the leader refused.
type RefusedError struct {
	Reason consensus.RefusalReason
	Config consensus.ConfigID // in force at the leader
	Why    string             // what has changed since, as far as it is known; may be empty
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("member: change refused: %v (configuration %v)", e.Reason, e.Config)
}

// SpecError means that what was asked for makes no sense, whatever the cluster looks like, or names no member.
type SpecError struct{ Text string }

func (e *SpecError) Error() string { return "member: " + e.Text }

// AddressError refuses peer URLs because the member is not to be found there.
type AddressError struct{ Text string }

func (e *AddressError) Error() string { return "member: " + e.Text }
