package member_test

import (
	"net"
	"testing"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// Ensure that a port that knows neither API, as those for peers, is not taken for an etcd.
func TestRun_memberPeerPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	env := []string{"QUORATE_ENDPOINTS=" + l.Addr().String()}
	ctltest.Run(t, t.Context(), command.Streams{Environ: env}, "", "member", "remove", "m1", "--yes").Want(t, command.StatusRefused, "", "where members reach each other")
}
