package keys

import (
	"context"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/console/page"
)

// eventRow is a change.
type eventRow struct {
	Revision int64
	What     string // created, changed, deleted
	Deleted  bool
	Name     string
	Href     string
	Size     int
	Preview  string
	Lease    int64
}

// tail receives changes from a watch until it is up to date, or its bounds are reached.
type tail struct {
	conn     grpc.ClientConnInterface
	key, end []byte

	rows     []eventRow // the last ones, the oldest first
	older    int        // that were dropped
	received int
	bytes    int
	upto     int64 // the last revision that was looked at
	cut      bool  // it ended before it was up to date
}

const (
	mostEvents     = 200     // that are shown
	mostReceived   = 500     // that are received
	mostEventBytes = 2 << 20 // of values that are received
	mostPreview    = 120     // characters of a value
	attempt        = 400 * time.Millisecond
	firstAsk       = 2 * time.Millisecond // from one question whether the watch is up to date to the next; then twice that
	lastAsk        = 64 * time.Millisecond
)

// receive opens a watch at a revision, and collects the changes from another one on, as long as an attempt may take. compacted
// is the oldest revision that is kept, if start is not.
func (t *tail) receive(ctx context.Context, start, from int64) (compacted int64, err error) {
	t.rows, t.older, t.received, t.bytes, t.upto, t.cut = nil, 0, 0, 0, 0, false
	ctx, cancel := context.WithTimeout(ctx, attempt)
	stream, err := pb.NewWatchClient(t.conn).Watch(ctx)
	if err != nil {
		cancel()
		return 0, err
	}
	messages, ended := make(chan *pb.WatchResponse), make(chan error, 1)
	wait := page.Go(func() {
		defer close(ended)
		ended <- pass(ctx, stream, messages)
	})
	defer func() { // answers are counted for this call until it returns
		cancel()
		wait()
	}()
	// Where the stream has ended, the goroutine that receives knows why.
	_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: t.key, RangeEnd: t.end, StartRevision: start}}})
	pause := firstAsk
	ask := time.NewTimer(pause)
	defer ask.Stop()
	for created := false; ; {
		select {
		case m := <-messages:
			created = true
			if last := t.take(m, from); last {
				return m.GetCompactRevision(), refusalOf(m)
			}
		case <-ask.C:
			if created { // the member answers once the watch has come to the present
				_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{}})
			}
			pause = min(2*pause, lastAsk)
			ask.Reset(pause)
		case err := <-ended:
			if ctx.Err() != nil {
				t.cut = true
				return 0, nil
			}
			return 0, err
		}
	}
}

// pass passes the messages of a stream on until the stream or the context ends.
func pass(ctx context.Context, stream pb.Watch_WatchClient, to chan<- *pb.WatchResponse) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		select {
		case to <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take adds the changes of a message. It returns true if there is nothing more to wait for.
func (t *tail) take(m *pb.WatchResponse, from int64) (last bool) {
	if m.GetCanceled() {
		return true
	}
	for _, e := range m.GetEvents() {
		t.upto = e.GetKv().GetModRevision()
		if t.upto >= from {
			t.add(e)
		}
	}
	switch {
	case t.received >= mostReceived || t.bytes >= mostEventBytes:
		t.cut = true
		return true
	case len(m.GetEvents()) == 0 && !m.GetCreated():
		t.upto = m.GetHeader().GetRevision()
		return true
	}
	return false
}

func (t *tail) add(e *mvccpb.Event) {
	kv := e.GetKv()
	t.received++
	t.bytes += len(kv.GetKey()) + len(kv.GetValue())
	one := eventRow{Revision: kv.GetModRevision(), What: "changed", Name: short(kv.GetKey()), Size: len(kv.GetValue()),
		Lease: kv.GetLease()}
	switch {
	case e.GetType() == mvccpb.Event_DELETE:
		one.What, one.Deleted = "deleted", true
		one.Href = toKey("/keys/key", kv.GetKey())
	default:
		if kv.GetVersion() == 1 {
			one.What = "created"
		}
		one.Preview = previewOf(kv.GetValue())
		one.Href = toKey("/keys/key", kv.GetKey(), "rev", number(one.Revision))
	}
	if len(t.rows) == 2*mostEvents {
		t.rows = append(t.rows[:0], t.rows[mostEvents:]...)
		t.older += mostEvents
	}
	t.rows = append(t.rows, one)
}

// previewOf is the begin of a value.
func previewOf(value []byte) string {
	switch kind := kindOf(value[:min(len(value), mostText)]); {
	case strings.HasPrefix(string(value), string(kubeMagic)):
		words := []string{kindKube}
		for _, f := range factsOf(value) {
			if f.Name == "kind" || f.Name == "namespace" || f.Name == "name" {
				words = append(words, f.Value)
			}
		}
		return cut(strings.Join(words, " "), mostPreview)
	case kind == kindBinary:
		return kindBinary
	}
	return visible(cut(string(value[:min(len(value), 4*mostPreview)]), mostPreview))
}

// refusalOf is the error of a watch that the member ended, but for a compaction; nil: it was not ended.
func refusalOf(m *pb.WatchResponse) error {
	if !m.GetCanceled() || m.GetCompactRevision() > 0 {
		return nil
	}
	reason := m.GetCancelReason()
	if _, text, found := strings.Cut(reason, " desc = "); found {
		reason = text
	}
	if known, ok := rpctypes.Error(status.Error(codes.Unknown, reason)).(rpctypes.EtcdError); ok {
		return status.Error(known.Code(), known.Error())
	}
	return status.Error(codes.Aborted, reason)
}
