package lease

import "errors"

var (
	// ErrNotPrimary is returned by methods that need deadlines if this member does not lead.
	ErrNotPrimary = errors.New("lease: deadlines are kept by the leader")
	// ErrExpired is returned for the renewal of a lease that is past its deadline but not revoked yet.
	ErrExpired = errors.New("lease: expired, its end is on the way")
	// ErrBadRow is an operating error: a row of the lease table does not decode.
	ErrBadRow = errors.New("lease: row does not decode")
)
