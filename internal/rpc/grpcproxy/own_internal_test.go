package grpcproxy

import (
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc"
)

// Ensure that the largest message from a member is that of answers to the proxy itself, too.
func TestNew_maxRecvBytes(t *testing.T) {
	const most = 1000
	_, member := startMember(t, func(_ string, s grpc.ServerStream) error {
		var asked frame
		if err := s.RecvMsg(&asked); err != nil {
			return err
		}
		return s.SendMsg(text(strings.Repeat("\x28\x00", most))) // a thousand times that there is no more
	})
	p, err := New(Options{Members: Members{Endpoints: []string{member}, MaxRecvBytes: most}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := unhealthy(t.Context(), p.client, false); !strings.Contains(got, "larger than max (2000 vs. 1000)") {
		t.Errorf("an answer of 2,000 bytes: got %q", got)
	}
}
