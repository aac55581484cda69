package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/server/discovery"
)

// fake is a registry of one goroutine. Each wait of a member lets what is in next happen.
type fake struct {
	kvs      []*mvccpb.KeyValue
	revision int64
	failures int // of the next requests
	next     []func(*fake)
}

var errDown = errors.New("the registry is down")

func (f *fake) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if f.failures > 0 {
		f.failures--
		return nil, errDown
	}
	return &clientv3.GetResponse{Kvs: f.kvs}, nil
}

func (f *fake) Put(_ context.Context, key, value string, _ ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	f.put(key, value)
	return &clientv3.PutResponse{}, nil
}

func (f *fake) put(key, value string) {
	f.revision++
	for _, kv := range f.kvs {
		if string(kv.Key) == key {
			kv.Value = []byte(value)
			return
		}
	}
	f.kvs = append(f.kvs, &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), CreateRevision: f.revision})
}

func (f *fake) wait(ctx context.Context, _ time.Duration) error {
	if len(f.next) == 0 {
		return context.DeadlineExceeded
	}
	f.next[0](f)
	f.next = f.next[1:]
	return nil
}

func (f *fake) join(id int) (string, error) {
	return discovery.Join(context.Background(), discovery.Options{
		Registry: f, Token: "t", Timeout: time.Second, Logger: slog.New(slog.DiscardHandler), Wait: f.wait,
	}, fmt.Sprint(id), entry(id))
}

func entry(id int) string { return fmt.Sprintf("m%d=http://10.0.0.%d:2380", id, id) }

const keys = "/_etcd/registry/t/"

func register(id int) func(*fake) {
	return func(f *fake) { f.put(fmt.Sprintf("%smembers/%d", keys, id), entry(id)) }
}

func TestJoin(t *testing.T) {
	for _, row := range []struct {
		name    string
		size    string
		before  []func(*fake)
		next    []func(*fake) // what happens while this member, number 5, waits
		want    string
		refusal error
	}{
		{name: "alone", size: "1", want: entry(5)},
		{name: "the last", size: "3", before: []func(*fake){register(9), register(1)},
			want: entry(9) + "," + entry(1) + "," + entry(5)},
		{name: "the first", size: "2", next: []func(*fake){func(*fake) {}, register(1)}, want: entry(5) + "," + entry(1)},
		{name: "started again", size: "2", before: []func(*fake){register(5), register(1)}, want: entry(5) + "," + entry(1)},
		{name: "the registry is down for a while", size: "1", before: []func(*fake){func(f *fake) { f.failures = 2 }},
			next: []func(*fake){func(*fake) {}, func(*fake) {}}, want: entry(5)},
		{name: "too late", size: "1", before: []func(*fake){register(1)}, refusal: discovery.ErrFull},
		{name: "too late, and registered", size: "1", before: []func(*fake){register(1), register(5)}, refusal: discovery.ErrFull},
		{name: "nobody else comes", size: "2", refusal: context.DeadlineExceeded},
		{name: "no size", refusal: discovery.ErrNoSize},
		{name: "a size that is none", size: "many", refusal: discovery.ErrBadSize},
		{name: "no members", size: "0", refusal: discovery.ErrBadSize},
		{name: "too many members", size: "1000000000", refusal: discovery.ErrBadSize},
		{name: "an entry that is none", size: "2", before: []func(*fake){func(f *fake) { f.put(keys+"members/1", "x") }},
			refusal: discovery.ErrBadEntry},
		{name: "an entry that is too large", size: "2", before: []func(*fake){func(f *fake) {
			f.put(keys+"members/1", "m1="+strings.Repeat("x", 1<<20))
		}}, refusal: discovery.ErrBadEntry},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := &fake{next: row.next}
			if row.size != "" {
				f.put(keys+"_config/size", row.size)
			}
			for _, do := range row.before {
				do(f)
			}
			got, err := f.join(5)
			if got != row.want || !errors.Is(err, row.refusal) {
				t.Errorf("got %q, %v, want %q, %v", got, err, row.want, row.refusal)
			}
			if err != nil && len(err.Error()) > 400 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			}
		})
	}
}
