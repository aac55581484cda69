package client

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed means that the client was closed before the write was sent: it is not applied.
	ErrClosed = errors.New("quorate: the client is closed")
	// ErrUnsupported means that no endpoint serves the native protocol: the write is not applied.
	ErrUnsupported = errors.New("quorate: the servers do not know native writes: use clientv3, or upgrade them")
)

// InDoubtError means that a write may or may not have been applied: read before you repeat it. If its session has
// ended, the result of the read is final; otherwise the write may still be applied a moment later.
type InDoubtError struct {
	Cause error
}

func (e *InDoubtError) Error() string {
	return fmt.Sprintf("quorate: the write may or may not have happened, read before you repeat it: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *InDoubtError) Unwrap() error { return e.Cause }
