package keys_test

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/console/keys"
	"github.com/quorate/quorate/internal/console/page"
)

// meter counts what calls ask and what they are answered.
type meter struct {
	grpc.ClientConnInterface
	calls, streams, bytes atomic.Int64
}

func (m *meter) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	m.calls.Add(1)
	err := m.ClientConnInterface.Invoke(ctx, method, args, reply, options...)
	m.bytes.Add(int64(proto.Size(reply.(proto.Message))))
	return err
}

func (m *meter) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	m.streams.Add(1)
	s, err := m.ClientConnInterface.NewStream(ctx, desc, method, options...)
	return &metered{s, m}, err
}

type metered struct {
	grpc.ClientStream
	meter *meter
}

func (m *metered) RecvMsg(v any) error {
	err := m.ClientStream.RecvMsg(v)
	if err == nil {
		m.meter.bytes.Add(int64(proto.Size(v.(proto.Message))))
	}
	return err
}

// Ensure that no section asks more than its bounds, whatever the store has.
func TestPages_cost(t *testing.T) {
	w := start(t)
	var names []string
	for _, group := range [][]string{many(5000, "/a/%04d/x/1"), many(5000, "/a/%04d/x/2"), many(5000, "/a/%04d/y/3")} {
		names = append(names, group...)
	}
	w.fill(names, "v")
	w.fill(many(3000, "/flat/%04d"), "0123456789")
	large := string(make([]byte, 1<<20))
	for i := range 20 {
		w.put(many(20, "/large/%d")[i], large)
	}
	w.fill(many(2000, "/gone/%04d"), "v")
	if _, err := w.client.Delete(w.ctx, "/gone/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		path                  string
		query                 url.Values
		calls, streams, bytes int64
	}{
		{"/keys", url.Values{"prefix": {"/a/"}}, 2, 100, 1 << 20},
		{"/keys", url.Values{"prefix": {"/"}}, 2, 10, 64 << 10},
		{"/keys", url.Values{"prefix": {"/flat/"}}, 102, 3, 64 << 10},
		{"/keys", url.Values{"prefix": {"/large/"}}, 22, 3, 64 << 10},
		{"/keys/key", url.Values{"key": {"/large/1"}}, 4, 0, 3 << 20},
		{"/keys/versions", url.Values{"key": {"/flat/0001"}}, 1, 0, 64 << 10},
		{"/keys/deleted", url.Values{}, 1, 0, 128 << 10},
		{"/keys/undelete", url.Values{}, 3, 0, 1 << 20},
		{"/keys/watch", url.Values{"from": {"1"}}, 1, 4, 12 << 20},
	} {
		m := &meter{ClientConnInterface: w.client.ActiveConnection()}
		begun := time.Now()
		for _, p := range keys.Pages() {
			if p.Path != row.path {
				continue
			}
			for _, s := range p.Sections {
				if _, err := s.Load(w.ctx, &page.Request{Conn: m, Query: row.query, Now: time.Now()}); err != nil && err != page.ErrHidden &&
					!errors.Is(err, context.DeadlineExceeded) && status.Code(err) != codes.DeadlineExceeded { // the machine is slow
					t.Errorf("%s?%s: %s: %v", row.path, row.query.Encode(), s.ID, err)
				}
			}
		}
		t.Logf("%s?%s: %d calls, %d streams, %d bytes, %s", row.path, row.query.Encode(), m.calls.Load(), m.streams.Load(), m.bytes.Load(),
			time.Since(begun))
		if m.calls.Load() > row.calls || m.streams.Load() > row.streams || m.bytes.Load() > row.bytes {
			t.Errorf("%s?%s: %d calls, %d streams, %d bytes; at most %d, %d and %d", row.path, row.query.Encode(), m.calls.Load(),
				m.streams.Load(), m.bytes.Load(), row.calls, row.streams, row.bytes)
		}
	}
}
