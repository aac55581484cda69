package ctl_test

import (
	"context"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorate/quorate/internal/ctl/command"
)

// Authenticate implements etcd's Auth service: no password is right, but app's.
func (f *fakeMember) Authenticate(ctx context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	if at, ok := ctx.Deadline(); ok {
		f.loginPatience = time.Until(at)
	}
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

// Ensure that a login may take as long as any other request, and not as long as a dial: a busy member takes seconds to compare a
// password, and the command then spoke of a cluster without a leader.
func TestRun_slowLogin(t *testing.T) {
	f := startFake(t)
	f.run(t, "get", "a", "--user=app:x", "--timeout=1m").Want(t, 0, "", "")
	if f.loginPatience <= command.DialTimeout {
		t.Errorf("the login may take %v of the minute", f.loginPatience)
	}
}
