package rpc

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
)

// doctorService is the native Doctor service: what members observe, for a program that judges it.
type doctorService struct {
	quoratepb.UnsafeDoctorServer
	options *Options
}

// Observe tells what this member observes.
func (d *doctorService) Observe(ctx context.Context, r *quoratepb.ObserveRequest) (*quoratepb.Observation, error) {
	return d.options.Observe(ctx, r.GetSeries()), nil
}

// Collect tells what all members observe.
func (d *doctorService) Collect(ctx context.Context, r *quoratepb.CollectRequest) (*quoratepb.Collected, error) {
	if d.options.Collect == nil {
		return nil, errAsksNone
	}
	all, err := d.options.Collect(ctx, r.GetSeries())
	if err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return all, nil
}

// errAsksNone is for a process that asks no other members.
var errAsksNone = status.Error(codes.Unimplemented, "quorate: this process asks no other members")
