package load

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	leaseTTLSeconds = 3600 // none ends during a measurement
	manyLeases      = 100  // keepalive-100: of each client
)

func grantLease(ctx context.Context, w *Worker) error {
	_, err := w.Client.Grant(ctx, leaseTTLSeconds)
	return err
}

// keepAlive returns an operation that renews n leases of the worker's own on one stream: all are asked for, then all answers
// are awaited, as etcd's client does when several are due.
func keepAlive(n int) func(context.Context, *Worker) error {
	return func(ctx context.Context, w *Worker) error {
		if err := w.hold(ctx, n); err != nil {
			return err
		}
		defer context.AfterFunc(ctx, w.leases.cancel)()
		for _, id := range w.leases.ids[:n] {
			if err := w.leases.stream.Send(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
				w.leases.stream = nil
				return err
			}
		}
		for range n {
			answer, err := w.leases.stream.Recv()
			if err == nil && answer.TTL <= 0 {
				err = fmt.Errorf("lease %x has ended", answer.ID)
			}
			if err != nil {
				w.leases.stream = nil
				return err
			}
		}
		return nil
	}
}

// hold makes sure that the worker has n leases and a stream.
func (w *Worker) hold(ctx context.Context, n int) error {
	for len(w.leases.ids) < n {
		granted, err := w.Client.Grant(ctx, leaseTTLSeconds)
		if err != nil {
			return err
		}
		w.leases.ids = append(w.leases.ids, int64(granted.ID))
	}
	if w.leases.stream != nil {
		return nil
	}
	lasting, cancel := context.WithCancel(w.Client.Ctx())
	stream, err := pb.NewLeaseClient(w.Client.ActiveConnection()).LeaseKeepAlive(lasting)
	if err != nil {
		cancel()
		return err
	}
	w.leases.stream, w.leases.cancel = stream, cancel
	return nil
}
