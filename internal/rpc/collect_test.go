package rpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/rpc"
)

// Ensure that every user may ask for what all members observe, only root for what they work for, and nobody else for either;
// and that what asks no others says so.
func TestCollect_permissions(t *testing.T) {
	s := serveMember(t, func(o *rpc.Options) {
		o.Observe = func(_ context.Context, series bool) *quoratepb.Observation {
			o := &quoratepb.Observation{MemberId: 7}
			if series {
				o.Series = []*quoratepb.ObservedPoint{{Writes: 9}}
			}
			return o
		}
		o.Collect = func(_ context.Context, series bool) (*quoratepb.Collected, error) {
			return &quoratepb.Collected{ByMember: 7, Alone: series}, nil
		}
		o.CollectTop = func(_ context.Context, r *quoratepb.TopRequest) (*quoratepb.TopAnswer, error) {
			return &quoratepb.TopAnswer{Members: []*quoratepb.TopOfMember{{Id: 7}}}, nil
		}
	})
	enable(t, s)
	ctx := waitContext(t)
	for user, row := range map[string]struct{ observes, ranks bool }{"root": {true, true}, "alice": {true, false}, "": {false, false}} {
		c := s.as(t, user)
		conn := c.ActiveConnection()
		doctor := quoratepb.NewDoctorClient(conn)
		all, err := doctor.Collect(ctx, &quoratepb.CollectRequest{Series: true})
		if got := err == nil && all.GetByMember() == 7 && all.GetAlone(); got != row.observes {
			t.Errorf("%q collects: %v, %v", user, all, err)
		}
		o, err := doctor.Observe(ctx, &quoratepb.ObserveRequest{Series: true})
		if got := err == nil && len(o.GetSeries()) == 1; got != row.observes {
			t.Errorf("%q observes: %v, %v", user, o, err)
		}
		top, err := quoratepb.NewTopClient(conn).Get(ctx, &quoratepb.TopRequest{AllMembers: true})
		if got := err == nil && len(top.GetMembers()) == 1; got != row.ranks {
			t.Errorf("%q ranks: %v, %v", user, top, err)
		}
	}
	top := topOf(t, s.as(t, "root"))
	if _, err := top.Get(ctx, &quoratepb.TopRequest{AllMembers: true, By: 3}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a ranking that there is not: %v", err)
	}
	own, err := top.Get(ctx, &quoratepb.TopRequest{})
	if err != nil || len(own.GetMembers()) > 0 || own.GetMemberId() != uint64(testMember) {
		t.Errorf("of one member: %v, %v", own, err)
	}
}

// Ensure that a process which asks no others says so, and that all callers' contexts end their calls.
func TestCollect_none(t *testing.T) {
	s := serveMember(t, func(o *rpc.Options) {
		o.Observe = func(context.Context, bool) *quoratepb.Observation { return &quoratepb.Observation{} }
	})
	ctx := waitContext(t)
	if _, err := quoratepb.NewDoctorClient(s.conn(t)).Collect(ctx, &quoratepb.CollectRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
	if _, err := quoratepb.NewTopClient(s.conn(t)).Get(ctx, &quoratepb.TopRequest{AllMembers: true}); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}
