package transport_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Ensure that a non-member's headers are bounded before anything else is known of it.
func TestTransport_headers(t *testing.T) {
	m := start(t, 1)
	conn, err := grpc.NewClient(strings.TrimPrefix(m.url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "a", strings.Repeat("x", 64<<10))
	err = conn.Invoke(ctx, "/any.Service/Any", &emptypb.Empty{}, &emptypb.Empty{}, grpc.WaitForReady(true))
	if err == nil || !strings.Contains(err.Error(), "header list size") {
		t.Errorf("64 KiB of headers are taken: %v", err)
	}
}
