package rpc

import (
	"errors"
	"io"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/rpc/etcderr"
	"github.com/quorate/quorate/internal/rpc/wire"
)

const (
	// maxRenewals bounds the renewals of one stream that the leader is asked for at once, and those that are read meanwhile.
	maxRenewals = 256
	// renewAgainAfter is how long a renewal of an expired lease waits for its revocation before the next try.
	renewAgainAfter = 50 * time.Millisecond
)

// renewals is one client's stream of renewals. The goroutine of the call renews and answers, one more receives.
type renewals struct {
	s      *shared
	stream grpc.ServerStream
	asked  chan kv.LeaseID // closed when no more renewals come
	end    error           // the reason; set before asked is closed
	ids    []kv.LeaseID    // being renewed

	response wire.KeepAliveResponse // reused: it is encoded before SendMsg returns
}

// LeaseKeepAlive answers renewals in the order in which they come. Those that have come meanwhile go to the leader in one
// request.
func (l *leaseService) LeaseKeepAlive(
	stream grpc.BidiStreamingServer[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse],
) error {
	r := &renewals{s: l.shared, stream: stream, asked: make(chan kv.LeaseID, maxRenewals)}
	go r.receive()
	for {
		err := r.take()
		if len(r.ids) == 0 {
			return err
		}
		if err := r.answer(); err != nil {
			return etcderr.Wire(err)
		}
	}
}

// receive reads the client's renewals.
func (r *renewals) receive() {
	defer close(r.asked)
	ended := r.stream.Context().Done()
	for {
		var call wire.KeepAliveCall
		if err := r.stream.RecvMsg(&call); err != nil {
			if !errors.Is(err, io.EOF) {
				r.end = err
			}
			return
		}
		select {
		case r.asked <- call.ID:
		case <-ended:
			return
		}
	}
}

// take waits for a renewal and takes those that have come with it. If there are none, the stream ends with err.
func (r *renewals) take() (err error) {
	r.ids = r.ids[:0]
	select {
	case id, open := <-r.asked:
		if !open {
			return r.end
		}
		r.ids = append(r.ids, id)
	case <-r.stream.Context().Done():
		return r.stream.Context().Err()
	}
	for len(r.ids) < maxRenewals {
		select {
		case id, open := <-r.asked:
			if !open {
				return nil
			}
			r.ids = append(r.ids, id)
		default:
			return nil
		}
	}
	return nil
}

// answer renews the leases that were taken. A lease that expired but is not revoked yet makes those behind it wait, too: only
// the revocation decides that it has ended. They are renewed again and again meanwhile, so that none of them expires.
func (r *renewals) answer() error {
	ctx := r.stream.Context()
	// The header is made first: its revision must not be newer than the renewal, or a client could see a lease alive at
	// a revision at which it was revoked already.
	r.response.Header = r.s.headerNow()
	permitted, denied := r.s.access.Renew(ctx, r.ids)
	for ids := r.ids[:permitted]; len(ids) > 0; {
		renewed, err := r.s.options.Member.RenewLeases(ctx, ids)
		if err != nil {
			return err
		}
		sent, err := r.send(ids, renewed)
		if err != nil {
			return err
		}
		if ids = ids[sent:]; len(ids) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(renewAgainAfter):
		}
	}
	return denied
}

// send answers up to the first lease that has expired and is not revoked yet. The TTL of a lease that does not exist is zero.
func (r *renewals) send(ids []kv.LeaseID, renewed []lease.Renewal) (sent int, err error) {
	for i := range renewed {
		if errors.Is(renewed[i].Err, lease.ErrExpired) {
			return i, nil
		}
		r.response.ID, r.response.TTLSeconds = ids[i], renewed[i].TTLSeconds
		if err := r.stream.SendMsg(&r.response); err != nil {
			return i, err
		}
	}
	return len(renewed), nil
}
