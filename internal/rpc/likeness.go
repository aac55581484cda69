package rpc

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// Errors that are ours to choose, and that clients of etcd know in etcd's form.

// headerBytes is what etcd puts before a request in its log without authentication: a header with an id of ten bytes. Its
// own ids take nine or ten.
const headerBytes = 14

// checkSize refuses a request of size bytes, as it came, if etcd's log entry of it would exceed the limit.
func (o *Options) checkSize(size int) error {
	if headerBytes+wire.SizeMessage(size) > o.MaxRequestBytes {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}

// writeTimeout makes what etcd tells of a write that found no leader in time: it was not proposed, and its time is over.
func writeTimeout(err error) error {
	if errors.Is(err, member.ErrNoLeader) {
		return context.DeadlineExceeded
	}
	return err
}

// readIndex is ReadIndex of the member. A read that ran out of time is told so, as by etcd, whatever it waited for: it may
// be asked again.
func (s *Services) readIndex(ctx context.Context) error {
	err := s.options.Member.ReadIndex(ctx)
	for _, cause := range [...]error{member.ErrNoLeader, member.ErrLeaderFailed, member.ErrConnectionLost} {
		if errors.Is(err, cause) {
			return rpctypes.ErrGRPCTimeout
		}
	}
	return err
}
