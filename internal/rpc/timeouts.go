package rpc

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/member"
)

// writeTimeout turns the lack of a leader into etcd's timeout error for a write: it was not proposed, and its time is over.
func writeTimeout(err error) error {
	if errors.Is(err, member.ErrNoLeader) {
		return context.DeadlineExceeded
	}
	return err
}

// readTimeout turns the lack of a leader, or of the connection to it, into etcd's timeout error for a read: it may be repeated.
func readTimeout(err error) error {
	for _, cause := range [...]error{member.ErrNoLeader, member.ErrLeaderFailed, member.ErrConnectionLost} {
		if errors.Is(err, cause) {
			return rpctypes.ErrGRPCTimeout
		}
	}
	return err
}
