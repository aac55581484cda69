package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/kv"
)

// BenchmarkWatchFanout measures the server's cost, from applying on, of sending a put to watchers, whose clients are in a
// process of their own, each stream on its connection. With distinct keys one watcher gets the event.
func BenchmarkWatchFanout(b *testing.B) {
	for _, row := range []struct {
		watched           string
		watchers, streams int
	}{
		{"key", 1_000, 1}, {"key", 1_000, 64}, {"key", 1_000, 1_000}, {"key", 10_000, 64}, {"key", 100_000, 64},
		{"prefix", 1_000, 64}, {"distinct", 10_000, 64}, {"distinct", 100_000, 64},
	} {
		b.Run(fmt.Sprintf("%s/watchers%d/streams%d", row.watched, row.watchers, row.streams), func(b *testing.B) {
			backend := newMachineBackend(b)
			s := serve(b, backend, nil)
			told := row.watchers
			if row.watched == "distinct" {
				told = 1
			}
			watchers := startWatchers(b, s.addr, row.watched, row.watchers, row.streams)
			value := bytes.Repeat([]byte("v"), 256)
			tell := func(i int) {
				put := &kv.PutOp{Key: watchedKey(row.watched, i%row.watchers), Value: value}
				if row.watched == "prefix" {
					put.Key = watchedKey("distinct", i)
				}
				if _, err := backend.Propose(b.Context(), &kv.Command{Put: put}); err != nil {
					b.Fatal(err)
				}
				watchers.run(b, told)
			}
			for i := range 3 { // pools have grown
				tell(i)
			}
			b.ReportAllocs()
			begun := readUsage(b)
			i := 0
			for b.Loop() {
				tell(i)
				i++
			}
			used := readUsage(b)
			used.report(b, begun)
			b.ReportMetric((used.micros-begun.micros)/float64(b.N*told), "cpu-us/event")
		})
	}
}

// watchedKey is the key of watcher i, or of all of them.
func watchedKey(watched string, i int) []byte {
	if watched == "distinct" {
		return fmt.Appendf(nil, "watched/%06d", i)
	}
	return []byte("watched/")
}

// watchersLoad starts the process of the watchers, which is this binary: it reads a line with a number, waits until so many
// events have come, and writes a line.
const watchersLoad = "QUORATE_WATCHERS_LOAD"

func startWatchers(b *testing.B, addr, watched string, watchers, streams int) *load {
	b.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestWatchersLoad$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %d", watchersLoad, addr, watched, watchers, streams))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, os.Stderr
	if err := errors.Join(cmd.Start(), theirIn.Close(), theirOut.Close()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait(), out.Close()); err != nil {
			b.Errorf("the watchers: %v", err)
		}
	})
	l := &load{in: in, out: out}
	l.run(b, 0) // all watchers are created
	return l
}

// TestWatchersLoad is the process of the watchers of BenchmarkWatchFanout.
func TestWatchersLoad(t *testing.T) {
	asked := os.Getenv(watchersLoad)
	if asked == "" {
		t.Skip("only BenchmarkWatchFanout starts it")
	}
	var addr, watched string
	var watchers, streams int
	if _, err := fmt.Sscan(asked, &addr, &watched, &watchers, &streams); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	var told atomic.Int64
	arrived := make(chan struct{}, 1)
	for i := range streams {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		stream, err := pb.NewWatchClient(conn).Watch(ctx, grpc.ForceCodecV2(unreadCodec{}))
		if err != nil {
			t.Fatal(err)
		}
		for n := i; n < watchers; n += streams {
			create := &pb.WatchCreateRequest{Key: watchedKey(watched, n)}
			if watched == "prefix" {
				create.RangeEnd = []byte("watched0")
			}
			asked := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}
			if err := stream.Send(asked); err != nil {
				t.Fatal(err)
			}
		}
		for n := i; n < watchers; n += streams {
			if err := stream.RecvMsg(nil); err != nil {
				t.Fatal(err)
			}
		}
		reading.Go(func() {
			for stream.RecvMsg(nil) == nil {
				told.Add(1)
				select {
				case arrived <- struct{}{}:
				default:
				}
			}
		})
	}
	for {
		var events int64
		if _, err := fmt.Scanln(&events); err != nil {
			return // the benchmark has ended
		}
		for told.Load() < events {
			<-arrived
		}
		told.Add(-events)
		fmt.Println(0)
	}
}

// unreadCodec does not decode responses.
type unreadCodec struct{}

func (unreadCodec) Name() string { return "proto" }
func (unreadCodec) Marshal(v any) (mem.BufferSlice, error) {
	encoded, err := proto.Marshal(v.(proto.Message))
	return mem.BufferSlice{mem.SliceBuffer(encoded)}, err
}
func (unreadCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
