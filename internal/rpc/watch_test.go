package rpc_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// watcher speaks the Watch protocol by hand.
type watcher struct {
	t      *testing.T
	stream pb.Watch_WatchClient
}

func (s *server) watch(t *testing.T) *watcher {
	t.Helper()
	stream, err := pb.NewWatchClient(s.conn(t)).Watch(waitContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return &watcher{t: t, stream: stream}
}

func (w *watcher) create(r *pb.WatchCreateRequest) *pb.WatchResponse {
	w.t.Helper()
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}})
	return w.next()
}

func (w *watcher) send(r *pb.WatchRequest) {
	w.t.Helper()
	if err := w.stream.Send(r); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watcher) next() *pb.WatchResponse {
	w.t.Helper()
	r, err := w.stream.Recv()
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestWatch_Create_shapesOfAnswers(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	c, ctx := s.client(t), waitContext(t)
	for i := range 5 {
		if _, err := c.Put(ctx, "k", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Compact(ctx, 4); err != nil {
		t.Fatal(err)
	}
	k, end := []byte("k"), []byte("a")
	w := s.watch(t)
	r := w.create(&pb.WatchCreateRequest{Key: k})
	if !r.Created || r.Canceled || r.WatchId != 0 || r.Header.Revision != 6 {
		t.Errorf("first watcher: got %v, want id 0 created at revision 6", r)
	}
	for _, row := range []struct {
		name    string
		request *pb.WatchCreateRequest
		reason  string
	}{
		{"an id in use", &pb.WatchCreateRequest{Key: k, WatchId: 5}, ""},
		{"an id in use", &pb.WatchCreateRequest{Key: k, WatchId: 5}, "mvcc: duplicate watch ID provided on the WatchStream"},
		{"an empty range", &pb.WatchCreateRequest{Key: k, RangeEnd: end}, "mvcc: watcher range is empty"},
		{"a negative start", &pb.WatchCreateRequest{Key: k, StartRevision: -1}, rpctypes.ErrCompacted.Error()},
	} {
		r := w.create(row.request)
		if row.reason == "" {
			if !r.Created || r.Canceled || r.WatchId != 5 {
				t.Errorf("chosen id: got %v", r)
			}
			continue
		}
		if !r.Created || !r.Canceled || r.WatchId != -1 || r.CancelReason != row.reason || r.Header.Revision != 6 {
			t.Errorf("%s: got %v, want created, cancelled, id -1, %q", row.name, r, row.reason)
		}
	}
	// A start that is too old: created, then cancelled with the compact revision and neither reason nor revision.
	r = w.create(&pb.WatchCreateRequest{Key: k, StartRevision: 2, WatchId: 9})
	if !r.Created || r.Canceled || r.WatchId != 9 {
		t.Errorf("start below the compaction: got %v, want created first", r)
	}
	r = w.next()
	if !r.Canceled || r.Created || r.CompactRevision != 4 || r.CancelReason != "" || r.Header.Revision != 0 {
		t.Errorf("start below the compaction: got %v, want cancelled by compaction 4", r)
	}
	w.create(&pb.WatchCreateRequest{Key: k, StartRevision: 4, WatchId: 10, PrevKv: true})
	if r := w.next(); len(r.Events) != 3 || r.Events[0].Kv.ModRevision != 4 || r.Events[0].PrevKv != nil ||
		r.Events[1].PrevKv == nil {
		t.Errorf("start at the compaction: got %v, want revisions 4 to 6 with what was before but for the first", r)
	}
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
		CancelRequest: &pb.WatchCancelRequest{WatchId: 777}}})
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
		CancelRequest: &pb.WatchCancelRequest{WatchId: 10}}})
	if r := w.next(); !r.Canceled || r.WatchId != 10 || r.CancelReason != "" {
		t.Errorf("cancel: got %v, want id 10 without reason, and no answer for the unknown id", r)
	}
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
	if r := w.next(); r.WatchId != -1 || r.Header.Revision != 6 || len(r.Events) != 0 {
		t.Errorf("progress: got %v, want id -1 at revision 6", r)
	}
}

func TestWatch_Events_ofManyWatchersAndFilters(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	all := c.Watch(ctx, "", clientv3.WithFromKey(), clientv3.WithPrevKV())
	deletes := c.Watch(ctx, "a", clientv3.WithFilterPut(), clientv3.WithCreatedNotify())
	if r := <-deletes; !r.Created {
		t.Fatalf("got %v, want created", r)
	}
	if _, err := c.Put(ctx, "a", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, "a", "2"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < 3 {
		for _, e := range (<-all).Events {
			prev := ""
			if e.PrevKv != nil {
				prev = string(e.PrevKv.Value)
			}
			got = append(got, fmt.Sprintf("%v %s=%s@%d after %q", e.Type, e.Kv.Key, e.Kv.Value, e.Kv.ModRevision, prev))
		}
	}
	want := []string{`PUT a=1@2 after ""`, `PUT a=2@3 after "1"`, `DELETE a=@4 after "2"`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if r := <-deletes; len(r.Events) != 1 || r.Events[0].Kv.ModRevision != 4 || r.Events[0].PrevKv != nil {
		t.Errorf("filtered: got %v, want the delete alone", r.Events)
	}
}

func TestWatch_Fragment_cutsLargeRevisions(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) { o.MaxRequestBytes = 1 << 20 })
	c, ctx := s.client(t), waitContext(t)
	w := s.watch(t)
	w.create(&pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte("l"), Fragment: true})
	for round := range 3 {
		var ops []clientv3.Op
		for i := range 9 {
			ops = append(ops, clientv3.OpPut(fmt.Sprint("k", i), string(bytes.Repeat([]byte{'a' + byte(round)}, 100<<10))))
		}
		if _, err := c.Txn(ctx).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	// All events at once, from the past: 2.7 MB in one response would exceed the bound of a message.
	w2 := s.watch(t)
	w2.create(&pb.WatchCreateRequest{Key: []byte("k"), RangeEnd: []byte("l"), StartRevision: 1, Fragment: true})
	for name, stream := range map[string]*watcher{"live": w, "from the past": w2} {
		events, fragments := 0, 0
		for events < 27 {
			r := stream.next()
			for _, e := range r.Events {
				if want := fmt.Sprint("k", events%9); string(e.Kv.Key) != want {
					t.Fatalf("%s: event %d is of %s, want %s", name, events, e.Kv.Key, want)
				}
				events++
			}
			if r.Fragment {
				fragments++
			} else if events%9 != 0 {
				t.Errorf("%s: a response that is no fragment ends inside a revision, after event %d", name, events)
			}
		}
		if name == "from the past" && fragments == 0 {
			t.Errorf("%s: nothing was cut", name)
		}
	}
}

func TestWatch_progressNotify(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) { o.WatchProgressInterval = 100 * time.Millisecond })
	w := s.watch(t)
	w.create(&pb.WatchCreateRequest{Key: []byte("k"), ProgressNotify: true, WatchId: 3})
	w.create(&pb.WatchCreateRequest{Key: []byte("k")})
	for range 2 {
		if r := w.next(); r.WatchId != 3 || len(r.Events) != 0 || r.Header.Revision != 1 || r.Created || r.Canceled {
			t.Errorf("got %v, want progress of watcher 3 at revision 1", r)
		}
	}
}

func TestWatch_streamEndsAsCanceled(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	ctx, cancel := context.WithCancel(waitContext(t))
	stream, err := pb.NewWatchClient(s.conn(t)).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{t: t, stream: stream}
	w.create(&pb.WatchCreateRequest{Key: []byte("k")})
	cancel()
	const want = `grpc_server_handled_total{grpc_code="Canceled",grpc_method="Watch",` +
		`grpc_service="etcdserverpb.Watch",grpc_type="bidi_stream"} 1`
	s.awaitMetric(t, want)
}
