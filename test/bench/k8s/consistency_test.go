package k8s

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// server is a store at a revision that answers lists of its keys, of which n have the revisions from 1 on.
type server struct {
	clientv3.KV
	kvs      []*mvccpb.KeyValue
	revision int64
	noStream bool
	spoil    func(stream int, parts []*pb.RangeResponse)
	asked    []clientv3.Op
}

func newServer(n int) *server {
	get, _ := store(n, func(_ int, a *clientv3.GetResponse) {})
	s := &server{revision: int64(n + 5)}
	for start := prefixes[pods]; len(s.kvs) < n; start = string(s.kvs[len(s.kvs)-1].Key) + "\x00" {
		page, _ := get(context.Background(), start, 0)
		s.kvs = append(s.kvs, page.Kvs...)
	}
	return s
}

// find returns what a list has at its revision.
func (s *server) find(key string, options []clientv3.OpOption) (op clientv3.Op, found []*mvccpb.KeyValue, count int64) {
	op = clientv3.OpGet(key, options...)
	s.asked = append(s.asked, op)
	for _, kv := range s.kvs {
		if bytes.Compare(kv.Key, op.KeyBytes()) >= 0 && (op.Rev() == 0 || kv.ModRevision <= op.Rev()) {
			found = append(found, kv)
		}
	}
	count = int64(len(found))
	if op.Limit() > 0 && op.Limit() < count {
		found = found[:op.Limit()]
	}
	return op, found, count
}

func (s *server) Get(_ context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	_, found, count := s.find(key, options)
	return &clientv3.GetResponse{Header: &pb.ResponseHeader{Revision: s.revision}, Kvs: found, Count: count,
		More: int64(len(found)) < count}, nil
}

func (s *server) GetStream(_ context.Context, key string, options ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	if s.noStream {
		return nil, status.Error(codes.Unimplemented, "unknown method RangeStream")
	}
	_, found, count := s.find(key, options)
	parts := []*pb.RangeResponse{{}}
	for i, kv := range found {
		if i > 0 && i%300 == 0 {
			parts = append(parts, &pb.RangeResponse{})
		}
		last := parts[len(parts)-1]
		last.Kvs = append(last.Kvs, kv)
	}
	last := parts[len(parts)-1]
	last.Header, last.Count, last.More = &pb.ResponseHeader{Revision: s.revision}, count, int64(len(found)) < count
	if s.spoil != nil {
		s.spoil(len(s.asked), parts)
	}
	answers := make(chan clientv3.RangeStreamResponse, len(parts))
	for _, part := range parts {
		answers <- clientv3.RangeStreamResponse{RangeResponse: part}
	}
	close(answers)
	return answers, nil
}

// A stream of pages asks for the first one's revision in all others, and has what pages have.
func TestStream(t *testing.T) {
	for _, row := range []struct {
		keys            int
		revision, limit int64
		streams, want   int
	}{{0, 0, 0, 1, 0}, {700, 0, 0, 1, 700}, {700, 0, 500, 2, 700}, {500, 0, 500, 1, 500}, {700, 600, 250, 3, 600}} {
		s, timed := newServer(row.keys), 0
		p := pages{resource: pods, revision: row.revision, limit: row.limit}
		l, err := stream(context.Background(), p, s, func(kvs []*mvccpb.KeyValue, _ time.Duration) { timed += len(kvs) })
		if err != nil || l.count != row.want || timed != row.want || len(s.asked) != row.streams {
			t.Errorf("%+v: got %+v, %d keys, %d streams, %v", row, l, timed, len(s.asked), err)
			continue
		}
		at := row.revision
		for i, op := range s.asked {
			if op.Rev() != at || op.Limit() != row.limit {
				t.Errorf("%+v, stream %d: at revision %d with limit %d", row, i, op.Rev(), op.Limit())
			}
			at = l.revision
		}
		if row.limit > 0 {
			walked, err := walk(context.Background(), p, pager(s, pods, row.limit), nil)
			if err != nil || *walked != *l {
				t.Errorf("%+v: pages have %+v, %v, and the stream %+v", row, walked, err, l)
			}
		}
	}
}

func TestStream_wrong(t *testing.T) {
	for _, row := range []struct {
		name  string
		limit int64
		spoil func(stream int, parts []*pb.RangeResponse)
		want  string
	}{
		{"no revision", 0, func(_ int, p []*pb.RangeResponse) { p[len(p)-1].Header = nil }, "without a revision"},
		{"a revision from before", 500, func(n int, p []*pb.RangeResponse) {
			if n == 2 {
				p[len(p)-1].Header.Revision--
			}
		}, "is said to be at"},
		{"a key that is younger than the list", 0, func(_ int, p []*pb.RangeResponse) {
			p[1].Kvs[0].ModRevision = 1000
		}, "has a key of revision 1000"},
		{"a younger key in a later page", 500, func(n int, p []*pb.RangeResponse) {
			if n == 2 {
				p[0].Kvs[0].ModRevision = 1000
			}
		}, "has revision 1000"},
		{"a part is told twice", 0, func(_ int, p []*pb.RangeResponse) { p[1].Kvs = p[0].Kvs }, "comes after"},
		{"a part is left out", 0, func(_ int, p []*pb.RangeResponse) { p[0].Kvs = nil }, "in a page, more: false"},
		{"more, of all", 0, func(_ int, p []*pb.RangeResponse) {
			p[len(p)-1].More, p[len(p)-1].Count = true, 800
		}, "asked for all"},
		{"none, and more", 500, func(n int, p []*pb.RangeResponse) {
			p[0].Kvs, p[1].Kvs = nil, nil
		}, "no keys in a page"},
	} {
		s := newServer(700)
		s.spoil = row.spoil
		l, err := stream(context.Background(), pages{resource: pods, limit: row.limit}, s, nil)
		if !errors.Is(err, errWrong) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %+v, %v, want %q", row.name, l, err, row.want)
		}
	}
}

// A check of a cache asks for exactly the revision that the watch stands at, and its list is compared like any other.
func TestCacheChecks_once(t *testing.T) {
	for _, noStream := range []bool{false, true} {
		v := newServer(700)
		v.noStream = noStream
		first := map[string]state{}
		for _, kv := range v.kvs {
			first[string(kv.Key)] = stateOf(kv)
		}
		var s Session
		w := &watch{resource: pods, client: &clientv3.Client{KV: v},
			checker: NewChecker("watch", &s.violations, 700, first, func() int64 { return 0 })}
		for _, at := range []int64{700, 650} { // at 650 the cache has 50 keys that the list has not
			w.reached.Store(at)
			got, err := s.checks().once(context.Background(), w)
			if op := v.asked[len(v.asked)-1]; err != nil || got != at || op.Rev() != at || op.Limit() != checkLimit {
				t.Errorf("got revision %d, %v; asked at %d with limit %d", got, err, op.Rev(), op.Limit())
			}
		}
		replay(w.checker, first, s.lists.all[:1])
		if texts, n := s.violations.All(); n != 0 {
			t.Errorf("equal: %q", texts)
		}
		replay(w.checker, first, s.lists.all[1:])
		if texts, n := s.violations.All(); n != 1 || !strings.Contains(texts[0], "revision 650") {
			t.Errorf("different: %q", texts)
		}
	}
}

// A list that cannot be is a violation at once.
func TestCacheChecks_once_wrong(t *testing.T) {
	v := newServer(700)
	v.spoil = func(_ int, parts []*pb.RangeResponse) { parts[0].Kvs = nil }
	var s Session
	w := &watch{resource: pods, client: &clientv3.Client{KV: v},
		checker: NewChecker("watch", &s.violations, 700, nil, nil)}
	w.reached.Store(700)
	_, err := s.checks().once(context.Background(), w)
	if texts, n := s.violations.All(); !errors.Is(err, errWrong) || n != 1 || !strings.Contains(texts[0], "watch: cache check") {
		t.Errorf("got %v, %q", err, texts)
	}
}
