package ctl_test

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/ctl/command"
)

// Authenticate implements etcd's Auth service: nobody's password is right.
func (f *fakeMember) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	return nil, rpctypes.ErrGRPCAuthFailed
}

// Ensure that a wrong password is told as one, and not as a cluster that cannot be reached.
func TestRun_wrongPassword(t *testing.T) {
	f := startFake(t)
	f.run(t, "get", "a", "--user=bob:wrong").Want(t, command.StatusRefused, "",
		"log in as bob: authentication failed, invalid user ID or password")
}
