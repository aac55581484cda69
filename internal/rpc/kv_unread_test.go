package rpc_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/rpc"
)

// dialFrom connects from an address of this machine.
func (s *server) dialFrom(t *testing.T, host string) *grpc.ClientConn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	conn, err := grpc.NewClient("passthrough:///"+s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Ensure that a host whose clients read nothing leaves memory for others, compressed or not, and gives it back when they go.
func TestServices_answersUnread(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a connection needs another address of this machine")
	}
	for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		budget := answers.New(48<<20, 7<<20)
		s := serveMember(t, func(o *rpc.Options) { o.Answers = budget })
		c := s.client(t)
		fillMiB(t, c, 6)
		hostile := s.dialFrom(t, "127.0.0.2")
		for range 2 {
			stream, err := pb.NewKVClient(hostile).RangeStream(waitContext(t),
				&pb.RangeRequest{Key: []byte("big/"), RangeEnd: []byte("big0")}, options...)
			if err == nil {
				_, err = stream.Header()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if used := budget.UsedBytes(); used < 12<<20 || used > 16<<20 {
			t.Errorf("one host has %d bytes", used)
		}
		if got, err := c.Get(waitContext(t), "big/", clientv3.WithPrefix(), clientv3.WithLimit(4)); err != nil || len(got.Kvs) != 4 {
			t.Errorf("another host: %v", err)
		}
		_ = hostile.Close()
		for budget.UsedBytes() != 0 {
			<-time.After(time.Millisecond)
		}
	}
}

// Ensure that lists, and leaders' values, count as other answers do.
func TestServices_listsAreCounted(t *testing.T) {
	budget := answers.New(4<<20, 4<<20)
	s := serveMember(t, func(o *rpc.Options) { o.Answers = budget })
	c := s.client(t)
	granted, err := c.Grant(waitContext(t), 600)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		key := fmt.Sprintf("%02d", i) + strings.Repeat("k", 2<<10)
		if _, err := c.Put(waitContext(t), key, "", clientv3.WithLease(granted.ID)); err != nil {
			t.Fatal(err)
		}
	}
	list := func(ctx context.Context) error {
		answer, err := pb.NewLeaseClient(s.conn(t)).LeaseTimeToLive(ctx,
			&pb.LeaseTimeToLiveRequest{ID: int64(granted.ID), Keys: true})
		if err == nil && len(answer.Keys) != 40 {
			err = fmt.Errorf("%d keys", len(answer.Keys))
		}
		return err
	}
	all := budget.Open(0)
	if err := all.Take(2 << 20); err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := list(impatient); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("there is no memory: got %v", err)
	}
	all.Release()
	if err := list(waitContext(t)); err != nil {
		t.Error(err)
	}
	election := v3electionpb.NewElectionClient(s.conn(t))
	_, err = election.Campaign(waitContext(t), &v3electionpb.CampaignRequest{
		Name: []byte("e"), Lease: int64(granted.ID), Value: make([]byte, 1<<20),
	})
	if err != nil {
		t.Fatal(err)
	}
	hostile := s.dialFrom(t, "127.0.0.1")
	if _, err := v3electionpb.NewElectionClient(hostile).Observe(waitContext(t), &v3electionpb.LeaderRequest{
		Name: []byte("e"),
	}); err != nil {
		t.Fatal(err)
	}
	for budget.UsedBytes() < 1<<20 {
		<-time.After(time.Millisecond)
	}
	_ = hostile.Close()
	for budget.UsedBytes() != 0 {
		<-time.After(time.Millisecond)
	}
}
