package rpc

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/burst"
	"github.com/quorate/quorate/internal/rpc/etcderr"
	"github.com/quorate/quorate/internal/rpc/timings"
	"github.com/quorate/quorate/internal/rpc/wire"
)

// watchDesc describes the Watch service.
func watchDesc(s *shared) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "etcdserverpb.Watch",
		Streams: []grpc.StreamDesc{{
			StreamName: "Watch", Handler: s.serveWatch, ServerStreams: true, ClientStreams: true,
		}},
		Metadata: "rpc.proto",
	}
}

// watchStream is one client's stream of watches; all streams of a client host share bounds. The goroutine of the call sends,
// another one receives.
type watchStream struct {
	s        *shared
	grpc     grpc.ServerStream
	host     string // of the client
	watches  *watch.Stream
	writer   *burst.Writer
	response wire.WatchResponse // reused: it is encoded before Send returns

	limits limits

	mu       sync.Mutex
	received error // the error that ended the receiver
}

func (s *shared) serveWatch(_ any, stream grpc.ServerStream) error {
	host := admission.CallerOf(stream.Context()).Host
	w := &watchStream{
		s: s, grpc: stream, host: host, watches: s.options.Member.Hub().OpenFor(host),
		writer: burst.New(stream, &s.stats.sentBytes),
	}
	defer w.writer.Close()
	defer w.watches.Close()
	defer context.AfterFunc(stream.Context(), w.watches.Stop)() // receive has ended if the client sends no more requests
	stopTicks := w.tick()
	defer stopTicks()
	go w.receive()
	err := w.send()
	if errors.Is(err, watch.ErrClosed) {
		w.mu.Lock()
		err = w.received
		w.mu.Unlock()
	}
	if errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled {
		return rpctypes.ErrGRPCWatchCanceled
	}
	return err
}

// receive handles the client's requests. It ends with the stream: when the call returns, RecvMsg fails. While too many answers
// wait for the client to read them it takes no requests, so that the client cannot send more either.
func (w *watchStream) receive() {
	for {
		request := new(pb.WatchRequest)
		err := w.watches.Accept(w.grpc.Context())
		if err == nil {
			err = w.grpc.RecvMsg(request)
		}
		if errors.Is(err, io.EOF) {
			return // the client sends no more requests but may go on to read
		}
		if err != nil {
			w.mu.Lock()
			w.received = err
			w.mu.Unlock()
			w.watches.Stop()
			return
		}
		switch {
		case request.GetCreateRequest() != nil:
			by, permitted, err := w.audited(request.GetCreateRequest())
			if err != nil {
				w.watches.Reject(err)
				continue
			}
			if request.GetCreateRequest().StartRevision == 0 && w.s.showOwn(w.grpc.Context()) != nil {
				continue // the stream has ended
			}
			if by.User != "" {
				w.watches.SetUser(by.User)
			}
			w.watches.Create(watchRequest(request.GetCreateRequest()))
			if !w.s.access.Unchanged(permitted) {
				w.limits.again.Store(true)
			}
		case request.GetCancelRequest() != nil:
			w.watches.Cancel(request.GetCancelRequest().WatchId)
		case request.GetProgressRequest() != nil:
			w.watches.RequestProgress()
		}
	}
}

// audited is mayWatch, and records the watch.
func (w *watchStream) audited(r *pb.WatchCreateRequest) (by auth.Credentials, state *auth.State, err error) {
	ctx, audits := w.grpc.Context(), &w.s.audits
	call := audits.begin(ctx, pb.Watch_Watch_FullMethodName, audit.OpWatch)
	if call == nil {
		return w.mayWatch(r)
	}
	call.keep(firstKeyOf(r), r.RangeEnd)
	if err = audits.admit(ctx, call); err == nil {
		by, state, err = w.mayWatch(r)
		call.event.User = by.User
	}
	audits.end(ctx, call, r.StartRevision, err)
	return by, state, err
}

// mayWatch checks the permission for the range of a watch: without a key, all keys from the first.
func (w *watchStream) mayWatch(r *pb.WatchCreateRequest) (auth.Credentials, *auth.State, error) {
	return w.s.access.ReadBy(w.grpc.Context(), firstKeyOf(r), r.RangeEnd)
}

func firstKeyOf(r *pb.WatchCreateRequest) []byte {
	if len(r.Key) == 0 {
		return []byte{0}
	}
	return r.Key
}

func watchRequest(r *pb.WatchCreateRequest) watch.Request {
	request := watch.Request{
		ID: r.WatchId, Key: r.Key, End: r.RangeEnd, Start: kv.Revision(r.StartRevision),
		PrevKV: r.PrevKv, ProgressNotify: r.ProgressNotify, Fragment: r.Fragment,
	}
	for _, filter := range r.Filters {
		switch filter {
		case pb.WatchCreateRequest_NOPUT:
			request.NoPut = true
		case pb.WatchCreateRequest_NODELETE:
			request.NoDelete = true
		}
	}
	return request
}

// tick asks for progress notifications at intervals that differ a little between streams, so that streams that were opened
// together do not all notify together. The runtime keeps the functions of some stopped timers until they would have run, so the
// function refers only to a watch.Stream, which holds nothing once it is closed.
func (w *watchStream) tick() (stop func()) {
	watches, clock, interval := w.watches, w.s.options.Clock, w.s.options.WatchProgressInterval
	interval += time.Duration(rand.Int64N(int64(interval)/10 + 1))
	var mu sync.Mutex
	var timer env.Timer
	stopped := false
	var arm func()
	arm = func() {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		timer = clock.AfterFunc(interval, func() {
			watches.Tick()
			arm()
		})
	}
	arm()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// send sends the responses of the hub for this stream, in order.
func (w *watchStream) send() error {
	for {
		responses, err := w.watches.Next(w.grpc.Context())
		if err != nil {
			return err
		}
		if err := w.sendAll(responses); err != nil {
			return err
		}
	}
}

func (w *watchStream) sendAll(responses []watch.Response) error {
	begun := w.s.timings.Now()
	var sent timings.Sent
	for i := range responses {
		if w.limits.review(w.grpc.Context(), w.s.access, w.watches); w.limits.withholds(&responses[i]) {
			continue
		}
		if err := w.sendOne(&responses[i]); err != nil {
			return err
		}
		sent.Count(&responses[i])
		responses[i].Batch, w.response.Events = nil, nil // it may be large
	}
	err := w.writer.Flush()
	w.s.stats.events.Add(sent.Events())
	w.s.timings.Send(&sent, begun)
	return err
}

func (w *watchStream) sendOne(r *watch.Response) error {
	w.response = wire.WatchResponse{
		Header: w.s.headerAt(r.Revision), ID: r.WatchID,
		Created: r.Created, Canceled: r.Canceled, CompactRevision: r.Compact,
	}
	if r.Err != nil {
		w.response.CancelReason = cancelReason(r.Err)
	}
	if r.Batch == nil {
		return w.writer.Send(&w.response)
	}
	w.response.Events = r.Batch.Encoded(encodeBatch)
	w.s.tookWatch(w.host, r.Batch, len(w.response.Events), w.limits.by.User)
	if r.Fragment && w.response.SizeWire() >= w.s.options.maxMessageBytes() && len(r.Batch.Events) > 1 {
		return w.sendFragments(r.Batch)
	}
	return w.writer.Send(&w.response)
}

func encodeBatch(b *watch.Batch) []byte { return wire.EncodeEvents(b.Events, b.PrevKV) }

// sendFragments divides a batch into messages below the largest size, each with at least one event. They share the batch's
// encoding: an event is a field, and fields follow each other.
func (w *watchStream) sendFragments(batch *watch.Batch) error {
	encoded := w.response.Events
	w.response.Fragment = true
	limit := w.s.options.maxMessageBytes() - w.response.SizePrefix()
	for i := 0; i < len(batch.Events); {
		size := wire.SizeEventField(&batch.Events[i], batch.PrevKV)
		for i++; i < len(batch.Events); i++ {
			next := wire.SizeEventField(&batch.Events[i], batch.PrevKV)
			if size+next >= limit {
				break
			}
			size += next
		}
		w.response.Events, encoded = encoded[:size], encoded[size:]
		w.response.Fragment = len(encoded) > 0
		if err := w.writer.Send(&w.response); err != nil {
			return err
		}
	}
	return nil
}

// cancelReason is etcd's text for a watch that was not created, or was cancelled.
func cancelReason(err error) string {
	switch {
	case errors.Is(err, watch.ErrDuplicateID):
		return "mvcc: duplicate watch ID provided on the WatchStream"
	case errors.Is(err, watch.ErrEmptyRange):
		return "mvcc: watcher range is empty"
	case errors.Is(err, watch.ErrTooManyWatchers):
		return "quorate: this client host has too many watchers; cancel some, or watch ranges instead of keys"
	case errors.Is(err, watch.ErrLargeRevision):
		return "quorate: one revision with its previous pairs is too large for this watch; " +
			"watch without prev_kv, or read the range and watch from the revision after that of the read"
	case errors.Is(err, kv.ErrCompacted):
		return rpctypes.ErrCompacted.Error()
	}
	return etcderr.Wire(err).Error()
}
