package ctl_test

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/ctl/command"
)

// Authenticate implements etcd's Auth service: nobody's password is right, but app's.
func (f *fakeMember) Authenticate(_ context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	if r.Name == "app" && r.Password == "x" {
		return &pb.AuthenticateResponse{Header: f.header(), Token: "1"}, nil
	}
	return nil, rpctypes.ErrGRPCAuthFailed
}

// Ensure that a wrong password is told as one, and not as a cluster that cannot be reached.
func TestRun_wrongPassword(t *testing.T) {
	f := startFake(t)
	f.run(t, "get", "a", "--user=bob:wrong").Want(t, command.StatusRefused, "",
		"log in as bob: authentication failed, invalid user ID or password")
}
