package proposals

import "errors"

var (
	// ErrTooMany means that too much is waiting already; nothing happened.
	ErrTooMany = errors.New("member: too many requests")
	// ErrLeaderFailed means that the session of a proposal was lost under a former leader. It may still happen.
	ErrLeaderFailed = errors.New("member: request timed out, possibly due to previous leader failure")
	// ErrNoLeader means that no leader was known when the caller's time ran out.
	ErrNoLeader = errors.New("member: no leader")
	// ErrTooLarge means that an encoded command exceeds what a request may have; nothing happened.
	ErrTooLarge = errors.New("member: request is too large")
	// ErrSessionLost means that the session of a native client is gone, and that what was proposed under it may have
	// happened before.
	ErrSessionLost = errors.New("member: the client's session was retired; the command may or may not have happened")
)
