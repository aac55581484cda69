package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that whatever a client sends as the messages of a watch ends, and that what is wrong ends the call with the reason.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"create_request":{"key":"YQ=="}}{"cancel_request":{"watch_id":"1"}} {}`))
	f.Add([]byte(`{"create_request":{"filters":["NOPUT",1]},"unknown":[{}]}`))
	f.Add([]byte("\n \x00{"))
	f.Fuzz(func(t *testing.T, body []byte) {
		ctx, end := context.WithCancelCause(context.Background())
		decoder := newMarshaler(admission.NewTurns()).NewDecoder(messagesForTesting(newIntake(1<<20), bytes.NewReader(body), end))
		for read := 0; ; read++ {
			err := decoder.Decode(new(pb.WatchRequest))
			if err == nil && read <= len(body) {
				continue
			}
			if !errors.Is(err, io.EOF) {
				t.Fatalf("message %d: got %v", read, err)
			}
			break
		}
		if ctx.Err() != nil && status.Code(context.Cause(ctx)) != codes.InvalidArgument {
			t.Fatalf("the call ended with %v", context.Cause(ctx))
		}
	})
}
