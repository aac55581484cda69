package rpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/limits/memory"
)

// These checks bound replicated state that every member holds in memory, by the share of the member with the least memory. The
// proposing side makes them, as it does checkQuota: members differ in their memory, and must not in what they apply.

// stateBounds are the bounds of replicated state.
type stateBounds struct {
	whole  memory.State // the bounds of the member with the least memory at its start
	admits memory.State // the bounds for requests of clients
	by     string       // the member whose memory it is, in words
}

// stateBounds returns the bounds by the least memory of this member and of those that all members of the configuration have
// published: those that are down, too.
func (s *shared) stateBounds(machine *apply.Machine) stateBounds {
	b := stateBounds{whole: s.options.State, by: "this member"}
	if least, of := machine.LeastMemory(); least > 0 {
		if bound := b.whole.Least(memory.Divide(least).State); bound != b.whole {
			b.whole, b.by = bound, fmt.Sprintf("member %s, which has --memory=%dMiB,", memberName(of), least>>20)
		}
	}
	b.admits = b.whole.Admits()
	return b
}

func memberName(of kv.PublishOp) string {
	if of.Name != "" {
		return of.Name
	}
	return fmt.Sprintf("%x", of.Member)
}

// admitLease refuses a lease for which the members have no memory. A caller that is admitted calls leave once the command is
// applied here, or was given up.
func (s *shared) admitLease(ctx context.Context, command *kv.Command) (leave func(), err error) {
	machine, release := s.options.Member.Machine()
	defer release()
	bounds := s.stateBounds(machine)
	config, _ := machine.Config()
	held, admits := int64(machine.Leases().Len()), bounds.admits.Leases/lease.EachBytes
	if s.grants.enter(held, admits, bounds.whole.Leases/lease.EachBytes, int64(len(config.Members))) {
		return s.grants.leave, nil
	}
	if err := s.access.Sign(ctx, command); err != nil {
		return nil, err
	}
	if held < admits {
		return nil, status.Error(codes.ResourceExhausted, "etcdserver: too many leases are being granted at once")
	}
	return nil, status.Errorf(codes.ResourceExhausted, "etcdserver: too many leases: %s has memory for %d: revoke some, hang "+
		"several keys on one, or give all members more --memory", bounds.by, admits)
}

// grantLease proposes a lease that was admitted. The lease stays counted if the caller goes away.
func (s *shared) grantLease(ctx context.Context, command *kv.Command, leave func()) (kv.Result, error) {
	type outcome struct {
		result kv.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := s.propose(context.WithoutCancel(ctx), command)
		leave() // before the caller gets the answer: its next grant must find the room
		done <- outcome{result, err}
	}()
	select {
	case got := <-done:
		return got.result, got.err
	case <-ctx.Done():
		return kv.Result{}, ctx.Err()
	}
}

// proposeUsers is propose for changes of users and roles: additions are refused at the bound on their memory.
func (s *shared) proposeUsers(ctx context.Context, command *kv.Command) (kv.Result, error) {
	if c := command.Auth; c != nil && c.Adds() {
		select { // the next addition is checked after this one was applied
		case s.adding <- struct{}{}:
			defer func() { <-s.adding }()
		case <-ctx.Done():
			return kv.Result{}, ctx.Err()
		}
		if err := s.admitUsers(ctx, command); err != nil {
			return kv.Result{}, err
		}
	}
	return s.propose(ctx, command)
}

func (s *shared) admitUsers(ctx context.Context, command *kv.Command) error {
	machine, release := s.options.Member.Machine()
	defer release()
	bounds := s.stateBounds(machine)
	most := min(bounds.admits.Users, auth.MaxBytes)
	held, adds := int64(s.access.State().Bytes()), int64(command.Auth.AddsBytes())
	if held+adds <= most {
		return nil
	}
	if err := s.access.Sign(ctx, command); err != nil {
		return err
	}
	return status.Errorf(codes.ResourceExhausted, "etcdserver: users and roles take %d bytes, and this adds up to %d: %s has "+
		"memory for %d: delete some, or give all members more --memory", held, adds, bounds.by, most)
}
