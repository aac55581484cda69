package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
)

// callWatchers is the number of watchers that get the event of a put in the row watch of BenchmarkCall, on callStreams streams.
const callWatchers, callStreams = 100, 10

// BenchmarkCall counts the cost of a call for a whole member, a cluster of one: its services, its log, on a disk that is not
// synced, and its state machine, on an engine in memory, since Pebble does background work at any time. One client in a process
// of its own makes one call after the other, so that counts do not depend on concurrent calls. `make bench-regress` compares
// them with committed figures.
func BenchmarkCall(b *testing.B) {
	var store *seldomFlushed
	// Ticks are as long as a server's: their cost must not show.
	m := startMemberOn(b, 100*time.Millisecond, func(dir string) (engine.Engine, error) {
		mem, err := engine.OpenMem(engine.MemOptions{FS: files.Disk, Dir: dir})
		store = &seldomFlushed{Mem: mem}
		return store, err
	})
	publish(b, m)
	s := serve(b, m, func(o *rpcOptions) { o.Clients = m.Clients() })
	fillForCalls(b, m)
	store.fill()
	for _, method := range []string{"put", "txn", "range", "list", "watch", "grant", "keepalive", "native"} {
		b.Run(method, func(b *testing.B) {
			load := startLoad(b, s.addr, method, 1, 1)
			load.run(b, 200) // connections, pools and stacks have grown
			b.ReportAllocs()
			begun := readUsage(b)
			b.ResetTimer()
			load.run(b, b.N)
			b.StopTimer()
			readUsage(b).report(b, begun)
		})
	}
}

// seldomFlushed is an engine in memory that is flushed, by one goroutine at a time, only until the benchmark has filled it: a
// flush writes all of it, at a random time.
type seldomFlushed struct {
	*engine.Mem
	mu   sync.Mutex
	full bool
}

func (e *seldomFlushed) Flush() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.full {
		return nil
	}
	return e.Mem.Flush()
}

func (e *seldomFlushed) fill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.full = true
}

// fillForCalls puts a thousand keys.
func fillForCalls(b *testing.B, m *member.Member) {
	b.Helper()
	commands := []kv.Command{{Put: &kv.PutOp{Key: []byte("bench/key"), Value: []byte("v")}}}
	for i := range 1000 {
		put := &kv.PutOp{Key: fmt.Appendf(nil, "many/%04d", i), Value: bytes.Repeat([]byte("v"), 256)}
		commands = append(commands, kv.Command{Put: put})
	}
	for i := range commands {
		result, err := m.Propose(b.Context(), &commands[i])
		if err = errors.Join(err, result.Err); err != nil {
			b.Fatal(err, m.Err())
		}
	}
}

// memberCalls are the calls that the clients' process can make beside those of BenchmarkRoad.
var memberCalls = map[string]func(*grpc.ClientConn) (call func() error, err error){
	"txn": callTxn, "list": callList, "watch": callWatch, "grant": callGrant, "keepalive": callKeepAlive, "native": callNative,
}

var callKey, callValue = []byte("bench/key"), bytes.Repeat([]byte("v"), 256)

// callTxn compares a key's revision with the last one and sets it.
func callTxn(conn *grpc.ClientConn) (func() error, error) {
	kvc := pb.NewKVClient(conn)
	found, err := kvc.Range(context.Background(), &pb.RangeRequest{Key: callKey})
	if err != nil || len(found.Kvs) != 1 {
		return nil, fmt.Errorf("no key, %w", err)
	}
	last := found.Kvs[0].ModRevision
	return func() error {
		answer, err := kvc.Txn(context.Background(), &pb.TxnRequest{
			Compare: []*pb.Compare{{Key: callKey, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
				TargetUnion: &pb.Compare_ModRevision{ModRevision: last}}},
			Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
				RequestPut: &pb.PutRequest{Key: callKey, Value: callValue}}}},
		})
		if err != nil || !answer.Succeeded {
			return fmt.Errorf("not set, %w", err)
		}
		last = answer.Header.Revision
		return nil
	}, nil
}

func callList(conn *grpc.ClientConn) (func() error, error) {
	kvc := pb.NewKVClient(conn)
	return func() error {
		found, err := kvc.Range(context.Background(), &pb.RangeRequest{Key: []byte("many/"), RangeEnd: []byte("many0")})
		if err == nil && len(found.Kvs) != 1000 {
			err = fmt.Errorf("%d keys", len(found.Kvs))
		}
		return err
	}, nil
}

// callWatch puts a key, and returns when all watchers have got the event.
func callWatch(conn *grpc.ClientConn) (func() error, error) {
	ctx := context.Background()
	received := make(chan error, callWatchers)
	for range callStreams {
		stream, err := pb.NewWatchClient(conn).Watch(ctx)
		if err != nil {
			return nil, err
		}
		for range callWatchers / callStreams {
			create := &pb.WatchCreateRequest{Key: callKey}
			err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}})
			if err == nil {
				_, err = stream.Recv()
			}
			if err != nil {
				return nil, err
			}
		}
		go func() {
			for err := error(nil); err == nil; received <- err {
				_, err = stream.Recv()
			}
		}()
	}
	put := callOf(conn, "put")
	return func() error {
		if err := put(); err != nil {
			return err
		}
		for range callWatchers {
			if err := <-received; err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func callGrant(conn *grpc.ClientConn) (func() error, error) {
	leases := pb.NewLeaseClient(conn)
	return func() error {
		_, err := leases.LeaseGrant(context.Background(), &pb.LeaseGrantRequest{TTL: 3600})
		return err
	}, nil
}

func callKeepAlive(conn *grpc.ClientConn) (func() error, error) {
	leases := pb.NewLeaseClient(conn)
	granted, err := leases.LeaseGrant(context.Background(), &pb.LeaseGrantRequest{TTL: 3600})
	if err != nil {
		return nil, err
	}
	stream, err := leases.LeaseKeepAlive(context.Background())
	return func() error {
		err := stream.Send(&pb.LeaseKeepAliveRequest{ID: granted.ID})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}, err
}

// callNative puts with our own client.
func callNative(conn *grpc.ClientConn) (func() error, error) {
	c, err := client.New(client.Config{Endpoints: []string{strings.TrimPrefix(conn.Target(), "passthrough:///")}})
	return func() error {
		_, err := c.Put(context.Background(), string(callKey), string(callValue))
		return err
	}, err
}
