package transport_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/transport"
)

// TestTransport_accept_noHello opens streams and says nothing. More than two may wait for no more than 10 ms.
func TestTransport_accept_noHello(t *testing.T) {
	m := start(t, 1, func(o *transport.Options) {
		o.Hello = admission.FirstMessageLimits{Timeout: time.Hour, Many: 2, ManyTimeout: 10 * time.Millisecond}
	})
	conn, err := grpc.NewClient(strings.TrimPrefix(m.url, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	ended := make(chan error, 3)
	for _, method := range []string{"Messages", "Snapshot", "Call"} {
		s, err := conn.NewStream(ctx, desc, "/quorate.Peer/"+method)
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- s.RecvMsg(new(any)) }()
	}
	if err := receive(t, ended, "the end of a stream"); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v, want %v", err, codes.DeadlineExceeded)
	}
	if stats := m.Stats(); stats.Unmet != 2 || stats.Silent != 1 {
		t.Errorf("%d streams wait and %d were ended, want 2 and 1", stats.Unmet, stats.Silent)
	}
}
