package rpc

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
)

// What follows bounds replicated state that every member holds in memory, by this member's share. It belongs to the proposing
// side, as checkQuota does: members differ in their memory, and must not in what they apply.

// checkLeases refuses a lease more than this member has memory for.
func (s *shared) checkLeases(ctx context.Context, command *kv.Command) error {
	machine, release := s.options.Member.Machine()
	defer release()
	if most := s.options.State.Leases / lease.EachBytes; int64(machine.Leases().Len()) >= most {
		if err := s.access.Sign(ctx, command); err != nil {
			return err
		}
		return status.Errorf(codes.ResourceExhausted, "etcdserver: too many leases: this member has memory for %d: "+
			"revoke some, hang several keys on one, or give all members more --memory", most)
	}
	return nil
}

// proposeUsers is propose for changes of users and roles: what adds to them is refused when they have what they may.
func (s *shared) proposeUsers(ctx context.Context, command *kv.Command) (kv.Result, error) {
	most := int(min(s.options.State.Users, auth.MaxBytes))
	if c := command.Auth; c != nil && c.Adds() && s.access.State().Bytes() >= most {
		if err := s.access.Sign(ctx, command); err != nil {
			return kv.Result{}, err
		}
		return kv.Result{}, status.Errorf(codes.ResourceExhausted, "etcdserver: users and roles take %d bytes, which is "+
			"all that they may at this member: delete some, or give all members more --memory", most)
	}
	return s.propose(ctx, command)
}
