package member

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/member/applier"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/proposals"
)

var (
	// ErrStopped means that the member is shutting down.
	ErrStopped = lanes.ErrStopped
	// ErrNoLeader means that no leader was known when the caller's time ran out.
	ErrNoLeader = proposals.ErrNoLeader
	// ErrTimeout means that a leader was known but the request did not finish in time. It may still happen.
	ErrTimeout = lanes.ErrTimeout
	// ErrLeaderFailed is a timeout during which the leader was lost. It may still happen.
	ErrLeaderFailed = proposals.ErrLeaderFailed
	// ErrConnectionLost is a timeout while the connection to the leader was down. It may still happen.
	ErrConnectionLost = lanes.ErrConnectionLost
	// ErrTooManyRequests means that too many requests are waiting already; nothing happened.
	ErrTooManyRequests = proposals.ErrTooMany
	// ErrTooLarge means that the encoded command exceeds MaxRequestBytes; nothing happened.
	ErrTooLarge = proposals.ErrTooLarge
	// ErrRemoved means that the cluster removed this member for ever.
	ErrRemoved = applier.ErrRemoved
	// ErrNotLeader means that only the leader can handle the request.
	ErrNotLeader = expiry.ErrNotLeader
	// ErrBadTransferee means that leadership cannot go to that member.
	ErrBadTransferee = errors.New("member: bad leader transferee")
	// ErrTransferTimeout means that a leadership transfer did not finish in time.
	ErrTransferTimeout = errors.New("member: leadership transfer timed out")
)

// CordonedError refuses leadership for a member that is cordoned or has the CORRUPT alarm.
type CordonedError struct {
	Name    string
	Corrupt bool
}

func (e *CordonedError) Error() string {
	if e.Corrupt {
		return e.Name + " is marked corrupt and takes no leadership: choose another member, and replace that one"
	}
	return fmt.Sprintf("%s is cordoned and takes no leadership: choose another member, or run `quorate member uncordon "+
		"%s` first", e.Name, e.Name)
}

// AsksAgain reports whether a process that wants to join should ask again after err: no process answered, no leader was known,
// or the time ran out.
func AsksAgain(err error) bool {
	for _, passing := range []error{
		ErrNoLeader, ErrNotLeader, ErrTimeout, ErrLeaderFailed, ErrConnectionLost, ErrStopped, ErrTooManyRequests,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
