package rpc_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/rpc"
)

// Ensure that every health endpoint, and gRPC's, reports a member that hangs as unhealthy, and that it recovers.
func TestServices_hangs(t *testing.T) {
	var hungFor atomic.Int64
	s := serveMember(t, func(o *rpc.Options) {
		o.Stalled = func(limit time.Duration) error {
			if time.Duration(hungFor.Load()) > limit {
				return errors.New("the loop hangs")
			}
			return nil
		}
	})
	want := func(state string, codes map[string]int, serving healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for path, want := range codes {
			code, body := s.get(t, path)
			if code != want || code != 200 && !strings.Contains(body, "the loop hangs") {
				t.Errorf("%s: %s: got %d %s, want %d", state, path, code, body, want)
			}
		}
		watch, err := healthpb.NewHealthClient(s.conn(t)).Watch(waitContext(t), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for {
			got, err := watch.Recv()
			if err != nil {
				t.Fatalf("%s: gRPC health never became %v: %v", state, serving, err)
			}
			if got.Status == serving {
				return
			}
		}
	}
	want("at work", map[string]int{"/health": 200, "/livez": 200, "/readyz": 200}, healthpb.HealthCheckResponse_SERVING)
	hungFor.Store(int64(30 * time.Second))
	want("slow", map[string]int{"/health": 503, "/health?serializable=true": 503, "/livez": 200, "/readyz": 503,
		"/readyz/progress": 503, "/readyz/linearizable_read": 503}, healthpb.HealthCheckResponse_NOT_SERVING)
	hungFor.Store(int64(10 * time.Minute))
	want("hung", map[string]int{"/livez": 503, "/livez/serializable_read": 503, "/livez/progress": 503},
		healthpb.HealthCheckResponse_NOT_SERVING)
	hungFor.Store(0)
	want("at work again", map[string]int{"/health": 200, "/livez": 200, "/readyz": 200},
		healthpb.HealthCheckResponse_SERVING)
}

// Ensure that the name of a service whose health is watched, which is kept as long as the watch, is short.
func TestServices_longServiceName(t *testing.T) {
	s := serveMember(t, nil)
	client := healthpb.NewHealthClient(s.conn(t))
	for length, want := range map[int]codes.Code{256: codes.NotFound, 257: codes.InvalidArgument, 1 << 20: codes.InvalidArgument} {
		asked := &healthpb.HealthCheckRequest{Service: strings.Repeat("x", length)}
		if _, err := client.Check(waitContext(t), asked); status.Code(err) != want {
			t.Errorf("check of %d bytes: %v", length, err)
		}
		watch, err := client.Watch(waitContext(t), asked)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = watch.Recv(); (status.Code(err) == codes.InvalidArgument) != (want == codes.InvalidArgument) {
			t.Errorf("watch of %d bytes: %v", length, err)
		}
	}
}
