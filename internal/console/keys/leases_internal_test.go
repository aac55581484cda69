package keys

import (
	"context"
	"net/url"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/console/page"
)

// lessor has leases, which last as many seconds as their id says.
type lessor struct {
	grpc.ClientConnInterface
	leases int
	lists  int
}

func (l *lessor) Invoke(_ context.Context, _ string, args, reply any, _ ...grpc.CallOption) error {
	switch answer := reply.(type) {
	case *pb.LeaseLeasesResponse:
		l.lists++
		for i := range l.leases {
			answer.Leases = append(answer.Leases, &pb.LeaseStatus{ID: int64(i + 1)})
		}
	case *pb.LeaseTimeToLiveResponse:
		answer.TTL, answer.GrantedTTL = args.(*pb.LeaseTimeToLiveRequest).ID, 1<<20
	}
	return nil
}

// Ensure that a list of very many leases is read seldom, and any other one whenever somebody looks.
func TestLongList(t *testing.T) {
	member, list, now := &lessor{leases: manyLeases + 1}, new(longList), time.Unix(1000, 0)
	look := func(after time.Duration) error {
		v, err := list.leases(t.Context(), &page.Request{Conn: member, Query: url.Values{}, Now: now.Add(after)})
		if err == nil && len(v.(*leasesView).Rows) != min(mostLeases, member.leases) {
			t.Errorf("the page has %d leases", len(v.(*leasesView).Rows))
		}
		return err
	}
	for _, row := range []struct {
		after time.Duration
		code  codes.Code
		lists int
	}{{0, codes.OK, 1}, {time.Second, codes.ResourceExhausted, 1}, {29 * time.Second, codes.ResourceExhausted, 1}, {30 * time.Second, codes.OK, 2}} {
		if err := look(row.after); status.Code(err) != row.code || member.lists != row.lists {
			t.Errorf("after %s: %v, %d lists", row.after, err, member.lists)
		}
	}
	member.leases = 3
	for i, after := range []time.Duration{time.Minute, time.Minute, time.Minute + 1} {
		if err := look(after); err != nil || member.lists != 3+i {
			t.Errorf("few leases: %v, %d lists", err, member.lists)
		}
	}
}
