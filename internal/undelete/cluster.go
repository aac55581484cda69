package undelete

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Cluster is the way to members. A call that gets no answer is made again: reading changes nothing, and each write says what it
// has found.
type Cluster struct {
	Conn     grpc.ClientConnInterface
	Timeout  time.Duration // of one call; zero: 5 seconds
	Patience time.Duration // for how long a call is made again; zero: 30 seconds
}

// RevisionError refuses Request.At.
type RevisionError struct {
	At       int64
	First    int64 // the oldest revision that can be read
	Revision int64 // of the store
}

// Error implements error.
func (e *RevisionError) Error() string {
	if e.At > e.Revision {
		return fmt.Sprintf("revision %d is in the future: the store is at revision %d", e.At, e.Revision)
	}
	return fmt.Sprintf("revision %d is compacted: the history is kept since revision %d", e.At, e.First)
}

const (
	defaultTimeout  = 5 * time.Second
	defaultPatience = 30 * time.Second
	firstPause      = 50 * time.Millisecond
	longestPause    = time.Second
)

// call makes a call until it is answered.
func (c *Cluster) call(ctx context.Context, do func(context.Context) error) error {
	_, err := c.repeat(ctx, do)
	return err
}

// repeat is call, and tells whether the call was made more than once: an earlier one may have done its work, too.
func (c *Cluster) repeat(ctx context.Context, do func(context.Context) error) (again bool, err error) {
	begun := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		bounded, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, defaultTimeout))
		err := do(bounded)
		cancel()
		if err == nil || ctx.Err() != nil || !passing(err) || time.Since(begun) >= cmp.Or(c.Patience, defaultPatience) {
			return again, err
		}
		again = true
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return again, ctx.Err()
		}
	}
}

// passing reports whether an error may be over soon: there was no answer, no leader, or too much to do.
func passing(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return true
	}
	known := rpctypes.Error(err)
	return errors.Is(known, rpctypes.ErrTooManyRequests) || errors.Is(known, rpctypes.ErrLeaderChanged) ||
		errors.Is(known, context.DeadlineExceeded)
}
