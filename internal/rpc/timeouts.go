package rpc

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/member"
)

// writeTimeout makes what etcd tells of a write that found no leader in time: it was not proposed, and its time is over.
func writeTimeout(err error) error {
	if errors.Is(err, member.ErrNoLeader) {
		return context.DeadlineExceeded
	}
	return err
}

// readTimeout makes what etcd tells of a read that ran out of time, whatever it waited for: it may be asked again.
func readTimeout(err error) error {
	for _, cause := range [...]error{member.ErrNoLeader, member.ErrLeaderFailed, member.ErrConnectionLost} {
		if errors.Is(err, cause) {
			return rpctypes.ErrGRPCTimeout
		}
	}
	return err
}
