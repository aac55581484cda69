package ctl_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// Authenticate implements etcd's Auth service: no password is right, but app's.
func (f *fakeMember) Authenticate(ctx context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	if f.cutOff && f.leader == 0 {
		<-ctx.Done() // it waits for a leader
		return nil, ctx.Err()
	}
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

// fakeHealth is gRPC's health service of a member. As of all services, a call that requires a leader is refused without one.
type fakeHealth struct {
	healthpb.UnimplementedHealthServer
	of *fakeMember
}

func (f fakeHealth) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if f.of.leader == 0 && len(md.Get(rpctypes.MetadataRequireLeaderKey)) > 0 {
		return nil, rpctypes.ErrGRPCNoLeader
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// Ensure that a command with a user says that there is no leader where it cannot log in for that, also by a dialer: it told to
// see `quorate status`, which logs in as well.
func TestRun_loginWithoutLeader(t *testing.T) {
	f := startFake(t)
	f.cutOff, f.leader = true, 0
	ctx := command.WithDialer(t.Context(), func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
	for _, line := range []string{"get a", "status", "doctor", "member list"} {
		for _, ctx := range []context.Context{t.Context(), ctx} {
			words := append(strings.Fields(line), "--user=app:x", "--timeout=200ms")
			got := ctltest.Run(t, ctx, ctltest.At(f.address), "", words...)
			got.Want(t, command.StatusUnreachable, "", "without a leader nobody can log in, and "+f.address+" knows none")
		}
	}
	f.leader = fakeID
	got := ctltest.Run(t, t.Context(), ctltest.At(f.address), "", "status", "--user=app:x")
	if strings.Contains(got.Err, "nobody can log in") {
		t.Errorf("with a leader: %s", got.Err)
	}
}
