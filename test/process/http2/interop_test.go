package http2_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip"
	_ "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/quorate/quorate/internal/rpc/front"
	"github.com/quorate/quorate/internal/rpc/h2"
)

// Ensure that gRPC's cases pass; a case that fails ends the process, which is how that package reports.
func TestServer_interop(t *testing.T) {
	s := front.New(front.Options{
		HTTP2: h2.Options{MaxStreams: 1000, MaxHeaderBytes: 16 << 10, StreamWindow: 1 << 20, ConnWindow: 8 << 20,
			Handshake: 5 * time.Second, Pings: h2.Pings{MinPing: time.Second}},
		Codec: encoding.GetCodecV2("proto"), Credentials: insecure.NewCredentials(), MaxMessage: 4 << 20,
	})
	testpb.RegisterTestServiceServer(s, patient{interop.NewTestServer()})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- s.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	tc := testpb.NewTestServiceClient(conn)
	ctx := context.Background()
	gzip := grpc.UseCompressor("gzip")
	for _, row := range []struct {
		name string
		run  func()
	}{
		{"empty_unary", func() { interop.DoEmptyUnaryCall(ctx, tc) }},
		{"large_unary", func() { interop.DoLargeUnaryCall(ctx, tc) }},
		{"large_unary, compressed", func() { interop.DoLargeUnaryCall(ctx, tc, gzip) }},
		{"client_streaming", func() { interop.DoClientStreaming(ctx, tc) }},
		{"client_streaming, compressed", func() { interop.DoClientStreaming(ctx, tc, gzip) }},
		{"server_streaming", func() { interop.DoServerStreaming(ctx, tc) }},
		{"server_streaming, compressed", func() { interop.DoServerStreaming(ctx, tc, gzip) }},
		{"ping_pong", func() { interop.DoPingPong(ctx, tc) }},
		{"ping_pong, compressed", func() { interop.DoPingPong(ctx, tc, gzip) }},
		{"empty_stream", func() { interop.DoEmptyStream(ctx, tc) }},
		{"timeout_on_sleeping_server", func() { interop.DoTimeoutOnSleepingServer(ctx, tc) }},
		{"cancel_after_begin", func() { interop.DoCancelAfterBegin(ctx, tc) }},
		{"cancel_after_first_response", func() { interop.DoCancelAfterFirstResponse(ctx, tc) }},
		{"custom_metadata", func() { interop.DoCustomMetadata(ctx, tc) }},
		{"status_code_and_message", func() { interop.DoStatusCodeAndMessage(ctx, tc) }},
		{"special_status_message", func() { interop.DoSpecialStatusMessage(ctx, tc) }},
		{"unimplemented_method", func() { interop.DoUnimplementedMethod(ctx, conn) }},
		{"unimplemented_service", func() {
			interop.DoUnimplementedService(ctx, testpb.NewUnimplementedServiceClient(conn))
		}},
	} {
		t.Run(row.name, func(t *testing.T) { row.run() })
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	s.GracefulStop()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("serve: %v", err)
	}
}

// patient is the server of the cases, but for a stream of requests that ends without one, as where a client has cancelled it: the
// answer waits until the server has heard of that. A client that gets it just then may take it for a success.
type patient struct{ testpb.TestServiceServer }

// StreamingInputCall adds up what the requests bear.
func (patient) StreamingInputCall(stream testpb.TestService_StreamingInputCallServer) error {
	size, err := 0, error(nil)
	for requests := 0; ; requests++ {
		var request *testpb.StreamingInputCallRequest
		if request, err = stream.Recv(); err != nil {
			if errors.Is(err, io.EOF) && requests == 0 {
				heard, end := context.WithTimeout(stream.Context(), 10*time.Second)
				<-heard.Done()
				end()
			}
			break
		}
		size += len(request.GetPayload().GetBody())
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return stream.SendAndClose(&testpb.StreamingInputCallResponse{AggregatedPayloadSize: int32(size)})
}
