package command_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/ctl/command"
)

// boaster is a process at an endpoint that names one member with very long URLs.
type boaster struct {
	pb.UnimplementedClusterServer
	bytes int
}

func (b boaster) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: &pb.ResponseHeader{},
		Members: []*pb.Member{{ID: 1, ClientURLs: []string{strings.Repeat("u", b.bytes)}}}}, nil
}

// Ensure that a command that reads no keys takes no answer of any size, and that one that reads keys takes a larger one.
func TestConnection_Do_largeAnswer(t *testing.T) {
	const large = 65 << 20
	for _, c := range []struct {
		most, bytes int
		taken       bool
	}{{0, 1 << 20, true}, {0, large, false}, {command.LargeAnswer, large, true}} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		pb.RegisterClusterServer(server, boaster{bytes: c.bytes})
		go func() { _ = server.Serve(listener) }()
		var out, errs bytes.Buffer
		connection := command.NewConnection(command.Streams{Out: &out, Err: &errs})
		connection.MostAnswer = c.most
		cmd := connection.AddTo(&cobra.Command{Use: "x"})
		if err := cmd.ParseFlags([]string{"--endpoints", listener.Addr().String()}); err != nil {
			t.Fatal(err)
		}
		err = connection.Do(t.Context(), func(ctx context.Context, client *clientv3.Client) error {
			_, err := client.MemberList(ctx)
			return err
		})
		if (err == nil) != c.taken || err != nil && !strings.Contains(err.Error(), "larger than max") {
			t.Errorf("an answer of %d bytes, of at most %d: %v", c.bytes, c.most, err)
		}
		server.Stop()
	}
}
