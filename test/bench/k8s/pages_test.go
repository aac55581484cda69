package k8s

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// store answers pages of n keys, and lets a test spoil an answer.
func store(n int, spoil func(page int, answer *clientv3.GetResponse)) (getPage, *[]int64) {
	var kvs []*mvccpb.KeyValue
	for i := range n {
		kvs = append(kvs, &mvccpb.KeyValue{Key: fmt.Appendf(nil, "%s%05d", prefixes[pods], i), ModRevision: int64(i + 1)})
	}
	var asked []int64
	return func(_ context.Context, start string, revision int64) (*clientv3.GetResponse, error) {
		from := 0
		for from < n && string(kvs[from].Key) < start {
			from++
		}
		to := min(n, from+pageLimit)
		answer := &clientv3.GetResponse{Header: &pb.ResponseHeader{Revision: int64(n + 5 + len(asked))}, Count: int64(n - from),
			Kvs: append([]*mvccpb.KeyValue(nil), kvs[from:to]...), More: to < n}
		asked = append(asked, revision)
		if spoil != nil {
			spoil(len(asked), answer)
		}
		return answer, nil
	}, &asked
}

var paged = pages{resource: pods, limit: pageLimit}

// All pages but the first ask for the first one's revision.
func TestWalk(t *testing.T) {
	for _, row := range []struct{ keys, pages int }{{0, 1}, {1, 1}, {500, 1}, {501, 2}, {4000, 8}} {
		get, asked := store(row.keys, nil)
		timed := 0
		l, err := walk(context.Background(), paged, get, func(kvs []*mvccpb.KeyValue, _ time.Duration) { timed++ })
		if err != nil || l.count != row.keys || timed != row.pages || l.revision != int64(row.keys+5) {
			t.Errorf("%d keys: got %+v, %d pages, %v", row.keys, l, timed, err)
		}
		for page, revision := range *asked {
			if want := min(page, 1) * (row.keys + 5); revision != int64(want) {
				t.Errorf("%d keys, page %d: at revision %d, want %d", row.keys, page, revision, want)
			}
		}
	}
}

func TestWalk_wrong(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(page int, answer *clientv3.GetResponse)
		want  string
	}{
		{"a key is left out", func(_ int, a *clientv3.GetResponse) { a.Kvs = a.Kvs[:len(a.Kvs)-1] }, "in a page, more: false"},
		{"keys in the wrong order", func(_ int, a *clientv3.GetResponse) { a.Kvs[0], a.Kvs[1] = a.Kvs[1], a.Kvs[0] }, "comes after"},
		{"a page begins before the last ended", func(page int, a *clientv3.GetResponse) {
			if page == 2 {
				a.Kvs[0] = &mvccpb.KeyValue{Key: fmt.Appendf(nil, "%s00499", prefixes[pods])}
			}
		}, "comes after"},
		{"a key that is younger than the list", func(page int, a *clientv3.GetResponse) {
			if page == 2 {
				a.Kvs[1].ModRevision = 606
			}
		}, "has revision 606"},
		{"no keys, and more", func(page int, a *clientv3.GetResponse) {
			a.Kvs, a.More, a.Count = nil, true, 3
		}, "no keys in a page"},
		{"more keys than asked for", func(page int, a *clientv3.GetResponse) {
			a.Kvs = append(a.Kvs, &mvccpb.KeyValue{Key: fmt.Appendf(nil, "%s00500", prefixes[pods])})
		}, "a page of 501 keys"},
	} {
		get, _ := store(600, row.spoil)
		l, err := walk(context.Background(), paged, get, nil)
		if !errors.Is(err, errWrong) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %+v, %v, want %q", row.name, l, err, row.want)
		}
	}
}

// A list must have what the watch told up to its revision.
func TestReplay(t *testing.T) {
	h := newHistory()
	first := map[string]state{"z": {modified: 3}}
	lists := []*listing{}
	list := func(keys ...string) {
		l := &listing{revision: h.revision, count: 1 + len(keys), digest: digest("z", 3)}
		for _, key := range keys {
			l.digest += digest(key, h.alive[key].ModRevision)
		}
		lists = append(lists, l)
	}
	list()
	h.put("a", "1", 0)
	h.put("b", "1", 0)
	list("a", "b")
	h.put("a", "2", 0)
	list("a", "b")
	h.remove("b")
	list("a")
	for spoilt := -1; spoilt < len(lists); spoilt++ {
		var v Violations
		c := NewChecker("watch", &v, 10, first, func() int64 { return 0 })
		c.Response(h.told)
		if spoilt >= 0 {
			lists[spoilt].digest++
		}
		replay(c, first, lists)
		texts, n := v.All()
		if spoilt < 0 && n != 0 || spoilt >= 0 && (n != 1 || !strings.Contains(texts[0], fmt.Sprintf("revision %d", lists[spoilt].revision))) {
			t.Errorf("list %d spoilt: got %q", spoilt, texts)
		}
		if spoilt >= 0 {
			lists[spoilt].digest--
		}
	}
}
