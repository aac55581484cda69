package command_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/ctl/command"
)

// blocked is a member that can record no call.
type blocked struct {
	pb.UnimplementedKVServer
	pb.UnimplementedAuthServer
	why error
}

func (b blocked) Put(context.Context, *pb.PutRequest) (*pb.PutResponse, error) { return nil, b.why }

func (b blocked) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return nil, b.why
}

func (b blocked) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	return nil, b.why
}

// Ensure that a write, a read and a login which a member cannot record are told as that, with the way back in, though the client
// repeats two of them until its time is over; and that another member that is away is told as one.
func TestConnection_Do_unrecorded(t *testing.T) {
	why := (&trail.BlockedError{Sink: "/var/log/audit.log", Why: "no space left on device", For: 7 * time.Second}).Error()
	calls := map[string]func(ctx context.Context, c *clientv3.Client) error{
		"put": func(ctx context.Context, c *clientv3.Client) error { _, err := c.Put(ctx, "k", "v"); return err },
		"get": func(ctx context.Context, c *clientv3.Client) error { _, err := c.Get(ctx, "k"); return err },
	}
	for _, tc := range []struct {
		name, call, user, member, says string
		status                         int
	}{
		{"a put", "put", "", why, "no space left on device", command.StatusRefused},
		{"a get", "get", "", why, "--audit-exempt-user", command.StatusRefused},
		{"a login", "get", "alice:pw", why, "AUDIT_BLOCKED: ", command.StatusRefused},
		{"a member without a leader", "put", "", "it is busy", "no answer from", command.StatusUnreachable},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server, member := grpc.NewServer(), blocked{why: status.Error(codes.Unavailable, tc.member)}
		pb.RegisterKVServer(server, member)
		pb.RegisterAuthServer(server, member)
		go func() { _ = server.Serve(listener) }()
		var out, errs bytes.Buffer
		connection := command.NewConnection(command.Streams{Out: &out, Err: &errs})
		cmd := connection.AddTo(&cobra.Command{Use: "x"})
		if err := cmd.ParseFlags([]string{"--endpoints", listener.Addr().String(), "--timeout=500ms", "--user", tc.user}); err != nil {
			t.Fatal(err)
		}
		err = connection.Do(t.Context(), calls[tc.call])
		failure, ok := errors.AsType[*command.Failure](err)
		if !ok || failure.Status != tc.status || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v", tc.name, err)
		}
		if tc.status == command.StatusRefused && strings.Contains(err.Error(), "leader") {
			t.Errorf("%s is told as one for want of a leader: %v", tc.name, err)
		}
		server.Stop()
	}
}
