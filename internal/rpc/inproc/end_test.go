package inproc_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/rpc/inproc"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// brokenService meets an invariant that does not hold.
type brokenService struct{ pb.UnimplementedLeaseServer }

func (brokenService) LeaseGrant(context.Context, *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	invariant.Broken("the lease %d is held twice", 7)
	return nil, nil
}

const asProcess = "QUORATE_TEST_INPROC_PANICS"

// Ensure that an invariant that a service finds broken ends the process, though the caller catches its panics as handlers of
// net/http do. The process is this test once more.
func TestChannel_Invoke_panics(t *testing.T) {
	if os.Getenv(asProcess) != "" {
		callBroken(t)
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "-test.run", "^TestChannel_Invoke_panics$")
	c.Env = append(os.Environ(), asProcess+"=1")
	out, err := c.CombinedOutput()
	text := string(out)
	if err == nil || !strings.Contains(text, "invariant broken: the lease 7 is held twice") || !strings.Contains(text, "LeaseGrant") ||
		strings.Contains(text, "went on") {
		t.Errorf("%v: %s", err, text)
	}
}

func callBroken(t *testing.T) {
	c := inproc.New(inproc.Options{
		Codec:           wire.Codec{Received: new(atomic.Uint64), Sent: new(atomic.Uint64)},
		MaxRequestBytes: 8, MaxReplyBytes: 8,
		Unary: func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			return handle(ctx, r)
		},
	})
	pb.RegisterLeaseServer(c, brokenService{})
	defer func() { t.Logf("the process went on after %v", recover()) }()
	_, err := pb.NewLeaseClient(c).LeaseGrant(t.Context(), &pb.LeaseGrantRequest{})
	t.Fatalf("the process went on: %v", err)
}
