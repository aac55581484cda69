package dev_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/ctl/dev"
)

// fakeVariable makes this test program a member instead of a test; its value is how the member behaves.
const fakeVariable = "QUORATE_DEV_FAKE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeVariable); mode == "parent" {
		os.Exit(fakeParent(os.Args[1], os.Args[2]))
	} else if mode != "" {
		os.Exit(fakeMember(mode, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fakeParent runs a cluster of one until it is killed.
func fakeParent(dir, port string) int {
	program, _ := os.Executable()
	basePort, _ := strconv.Atoi(port)
	err := dev.Run(context.Background(), dev.Options{Dir: dir, Members: 1, BasePort: basePort, Program: program,
		Environ: append(os.Environ(), fakeVariable+"=live"), Out: os.Stdout, Pace: quick})
	fmt.Fprintln(os.Stderr, err)
	return 1
}

type fakeStatus struct {
	pb.UnimplementedMaintenanceServer
	id uint64
}

// Status claims that m1 leads.
func (f fakeStatus) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: f.id, Revision: 5}, Leader: 1, RaftTerm: 3,
		RaftIndex: 9, RaftAppliedIndex: 9, DbSize: 4096, Version: "3.7.1"}, nil
}

// fakeMember serves Status on the client URL until it is told to stop.
func fakeMember(mode string, args []string) int {
	flags := flag.NewFlagSet("fake", flag.ContinueOnError)
	name := flags.String("name", "", "")
	dir := flags.String("data-dir", "", "")
	client := flags.String("listen-client-urls", "", "")
	delay := flags.String("peer-delay", "", "")
	heartbeat := flags.String("heartbeat-interval", "", "")
	election := flags.String("election-timeout", "", "")
	for _, ignored := range []string{"advertise-client-urls", "listen-peer-urls", "initial-advertise-peer-urls",
		"initial-cluster", "initial-cluster-token", "level-policy", "backup-places"} {
		flags.String(ignored, "", "")
	}
	if err := flags.Parse(args); err != nil {
		fmt.Fprintf(os.Stderr, "quorate: %v\n", err)
		return 2
	}
	fmt.Fprintf(os.Stderr, `{"level":"info","msg":"starting","delay":"%s","pace":"%s/%s"}`+"\n", *delay, *heartbeat, *election)
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		panic(err)
	}
	mark := filepath.Join(*dir, "started")
	_, absent := os.Stat(mark)
	os.WriteFile(mark, nil, 0o644)
	switch {
	case mode == "die", mode == "m2 dies once" && *name == "m2" && absent != nil:
		fmt.Fprintln(os.Stderr, `{"level":"error","msg":"disk failed","err":"no sectors"}`)
		fmt.Fprintln(os.Stderr, `{"level":"info","msg":"stopping"}`)
		return 1
	case mode == "panic":
		panic("a broken invariant") // ends with status 2, as wrong flags do
	case mode == "stubborn":
		signal.Ignore(syscall.SIGTERM)
	}
	l, err := net.Listen("tcp", strings.TrimPrefix(*client, "http://"))
	if err != nil {
		fmt.Fprintf(os.Stderr, "quorate: %v\n", err)
		return 1
	}
	server := grpc.NewServer()
	pb.RegisterMaintenanceServer(server, fakeStatus{id: uint64((*name)[1] - '0')})
	if mode != "stubborn" {
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		context.AfterFunc(ctx, server.Stop)
	}
	server.Serve(l)
	return 0
}
