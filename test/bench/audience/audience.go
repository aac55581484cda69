package audience

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/test/bench/latency"
)

// Key is what all watchers watch.
const Key = "watched"

const toldTimeout = 30 * time.Second

// Audience is all watchers of a cluster. Use New.
type Audience struct {
	watchers  int
	base      time.Time
	written   uint64
	told      atomic.Uint64
	measuring atomic.Bool
	reached   chan struct{} // all watchers were told of what is written
	due       atomic.Uint64 // how many will have been told then

	clients  []*clientv3.Client
	listens  []*listener
	cancel   context.CancelFunc
	group    sync.WaitGroup
	mu       sync.Mutex
	failures error
}

// New returns an audience of so many watchers. It must be closed.
func New(watchers int) *Audience {
	return &Audience{watchers: watchers, base: time.Now(), reached: make(chan struct{}, 1)}
}

// Open makes the watches: equally many on each of so many streams, each stream on a connection of its own.
func (a *Audience) Open(ctx context.Context, streams int, connect func(i int) (*clientv3.Client, error)) error {
	ctx, a.cancel = context.WithCancel(ctx)
	for i := range streams {
		client, err := connect(i)
		if err != nil {
			return err
		}
		a.clients = append(a.clients, client)
		if _, err := client.Get(ctx, Key); err != nil {
			return err
		}
		stream, err := pb.NewWatchClient(client.ActiveConnection()).Watch(ctx, grpc.ForceCodecV2(wireCodec{}))
		if err != nil {
			return err
		}
		// Since integers are cut down, the streams get all watchers among them.
		l := &listener{a: a, stream: stream, seen: make([]uint64, (i+1)*a.watchers/streams-i*a.watchers/streams)}
		if err := l.create(); err != nil {
			return err
		}
		a.listens = append(a.listens, l)
	}
	for _, l := range a.listens {
		a.group.Go(func() {
			if err := l.listen(); err != nil && ctx.Err() == nil {
				a.fail(err)
			}
		})
	}
	return nil
}

func (a *Audience) fail(err error) {
	a.mu.Lock()
	a.failures = errors.Join(a.failures, err)
	a.mu.Unlock()
}

func (a *Audience) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failures
}

// Measure has the times counted from now on.
func (a *Audience) Measure() { a.measuring.Store(true) }

// Tell writes a value, which has some bytes replaced, and waits until all watchers were told.
func (a *Audience) Tell(ctx context.Context, writer *clientv3.Client, random string) error {
	ctx, cancel := context.WithTimeout(ctx, toldTimeout)
	defer cancel()
	a.written++
	a.due.Store(a.written * uint64(a.watchers))
	value := []byte(random)
	binary.BigEndian.PutUint64(value, uint64(time.Since(a.base)))
	binary.BigEndian.PutUint64(value[8:], a.written)
	if _, err := writer.Put(ctx, Key, string(value)); err != nil {
		return err
	}
	select {
	case <-a.reached:
		return a.failed()
	case <-ctx.Done():
		missing := a.due.Load() - a.told.Load()
		return errors.Join(fmt.Errorf("%d watchers were not told of write %d: %w", missing, a.written, ctx.Err()), a.failed())
	}
}

// Times are from the begin of a write until a watcher was told of it.
func (a *Audience) Times() (all latency.Histogram) {
	for _, l := range a.listens {
		l.mu.Lock()
		all.Add(&l.times)
		l.mu.Unlock()
	}
	return all
}

// Close ends the watches. It returns what was wrong with them.
func (a *Audience) Close() error {
	if a.cancel != nil {
		a.cancel()
	}
	a.group.Wait()
	var failures []error
	for _, client := range a.clients {
		failures = append(failures, client.Close())
	}
	return errors.Join(append(failures, a.failed())...)
}

// listener is one stream. Watches have the ids from 1 on.
type listener struct {
	a      *Audience
	stream pb.Watch_WatchClient
	seen   []uint64 // the last write that each watch was told of

	mu    sync.Mutex
	times latency.Histogram
}

func (l *listener) create() error {
	for i := range l.seen {
		create := &pb.WatchCreateRequest{Key: []byte(Key), WatchId: int64(i) + 1}
		err := l.stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}})
		if err != nil {
			return err
		}
	}
	for range l.seen {
		var r watchResponse
		if err := l.stream.RecvMsg(&r); err != nil {
			return err
		}
		if !r.created || r.canceled {
			return fmt.Errorf("watch is not created: %+v", r)
		}
	}
	return nil
}

func (l *listener) listen() error {
	for {
		var r watchResponse
		if err := l.stream.RecvMsg(&r); err != nil {
			return err
		}
		if err := l.take(&r); err != nil {
			return err
		}
	}
}

func (l *listener) take(r *watchResponse) error {
	now := time.Since(l.a.base)
	if r.canceled || r.created || r.id < 1 || r.id > uint64(len(l.seen)) || len(r.values) == 0 {
		return fmt.Errorf("a watch was told %+v", *r)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, value := range r.values {
		if len(value) < 16 {
			return fmt.Errorf("watch %d was told of a value of %d bytes", r.id, len(value))
		}
		written := binary.BigEndian.Uint64(value[8:])
		if last := l.seen[r.id-1]; written != last+1 {
			return fmt.Errorf("watch %d was told of write %d after %d", r.id, written, last)
		}
		l.seen[r.id-1] = written
		if l.a.measuring.Load() {
			l.times.Record(now - time.Duration(binary.BigEndian.Uint64(value)))
		}
		if l.a.told.Add(1) == l.a.due.Load() {
			l.a.reached <- struct{}{}
		}
	}
	return nil
}

// watchResponse is what the listeners look at of a WatchResponse: reading no more of it leaves the processor to the servers.
type watchResponse struct {
	id                uint64
	created, canceled bool
	values            [][]byte
}

var errWire = errors.New("not a valid message")

// decode reads watch_id=2 created=3 canceled=4 events=11{kv=2{value=5}}.
func (r *watchResponse) decode(message []byte) error {
	return eachField(message, func(number protowire.Number, n uint64, field []byte) error {
		switch number {
		case 2:
			r.id = n
		case 3:
			r.created = n != 0
		case 4:
			r.canceled = n != 0
		case 11:
			return eachField(field, func(number protowire.Number, _ uint64, pair []byte) error {
				if number != 2 {
					return nil
				}
				return eachField(pair, func(number protowire.Number, _ uint64, value []byte) error {
					if number == 5 {
						r.values = append(r.values, value)
					}
					return nil
				})
			})
		}
		return nil
	})
}

// eachField visits the fields of a message that are numbers or bytes.
func eachField(message []byte, visit func(number protowire.Number, n uint64, field []byte) error) error {
	for len(message) > 0 {
		number, kind, used := protowire.ConsumeTag(message)
		if used < 0 {
			return errWire
		}
		message = message[used:]
		var n uint64
		var field []byte
		switch kind {
		case protowire.VarintType:
			n, used = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			field, used = protowire.ConsumeBytes(message)
		default:
			used = protowire.ConsumeFieldValue(number, kind, message)
		}
		if used < 0 {
			return errWire
		}
		message = message[used:]
		if err := visit(number, n, field); err != nil {
			return err
		}
	}
	return nil
}

// wireCodec is the codec of streams of which only parts of the responses are read.
type wireCodec struct{}

// Name implements encoding.CodecV2.
func (wireCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (wireCodec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("no message: %T", v)
	}
	encoded, err := proto.Marshal(message)
	return mem.BufferSlice{mem.SliceBuffer(encoded)}, err
}

// Unmarshal implements encoding.CodecV2.
func (wireCodec) Unmarshal(data mem.BufferSlice, v any) error {
	response, ok := v.(*watchResponse)
	if !ok {
		return fmt.Errorf("no response: %T", v)
	}
	return response.decode(data.Materialize())
}
