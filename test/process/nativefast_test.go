package process_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/client"
)

// farConn is a connection on which everything arrives later, both ways.
type farConn struct {
	net.Conn
	delay    time.Duration
	out, in  chan farBytes
	rest     []byte
	closed   chan struct{}
	once     sync.Once
	carriers sync.WaitGroup
}

type farBytes struct {
	due   time.Time
	bytes []byte
}

const farQueue = 1 << 12

func dialFar(delay time.Duration) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		f := &farConn{
			Conn: conn, delay: delay, closed: make(chan struct{}),
			out: make(chan farBytes, farQueue), in: make(chan farBytes, farQueue),
		}
		f.carriers.Go(f.carryOut)
		f.carriers.Go(f.carryIn)
		return f, nil
	})
}

func (f *farConn) Write(p []byte) (int, error) {
	select {
	case f.out <- farBytes{time.Now().Add(f.delay), slices.Clone(p)}:
		return len(p), nil
	case <-f.closed:
		return 0, net.ErrClosed
	}
}

func (f *farConn) carryOut() {
	for {
		select {
		case b := <-f.out:
			f.arrive(b.due)
			if _, err := f.Conn.Write(b.bytes); err != nil {
				_ = f.Conn.Close()
				return
			}
		case <-f.closed:
			return
		}
	}
}

// arrive returns when what was sent has crossed the distance, or at once if no process listens any more.
func (f *farConn) arrive(due time.Time) {
	select {
	case <-time.After(time.Until(due)):
	case <-f.closed:
	}
}

func (f *farConn) carryIn() {
	defer close(f.in)
	for {
		buffer := make([]byte, 32<<10)
		n, err := f.Conn.Read(buffer)
		if n > 0 {
			select {
			case f.in <- farBytes{time.Now().Add(f.delay), buffer[:n]}:
			case <-f.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (f *farConn) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		b, ok := <-f.in
		if !ok {
			return 0, net.ErrClosed
		}
		f.arrive(b.due)
		f.rest = b.bytes
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *farConn) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

// SetDeadline and the others do nothing: gRPC has deadlines of its own above.
func (f *farConn) SetDeadline(time.Time) error      { return nil }
func (f *farConn) SetReadDeadline(time.Time) error  { return nil }
func (f *farConn) SetWriteDeadline(time.Time) error { return nil }

// TestNativeClient_fast kills the leader of five members that are far apart, again and again, under a native client that is
// far from all of them and asks them by itself. Most of its writes are decided in one round trip, and each of those that were
// acknowledged is in the history once, at the revision that was told.
func TestNativeClient_fast(t *testing.T) {
	const trip = 10 * time.Millisecond
	c := startCluster(t, 5, "--peer-delay=5ms")
	native := c.connectFar(trip / 2)
	defer native.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	count := &counters{puts: map[string]int64{}}
	told := &revisions{at: map[int64]string{}}
	var load sync.WaitGroup
	for lane := range 4 {
		load.Go(func() { told.put(ctx, t, native, count, fmt.Sprintf("put%d", lane)) })
	}
	load.Go(func() { count.swap(ctx, native) })
	until(t, "five hundred writes in peace", func(context.Context) bool { return told.count() >= 500 })
	calm := native.Stats()
	kills := killLeaders(t, c, faultTime)
	stats := native.Stats()
	stop()
	load.Wait()
	t.Logf("in peace %+v; after %d leaders were killed %+v; %d writes told, median in peace %v", calm, kills, stats,
		len(told.at), told.median())
	if len(count.doubts)+len(count.failures) > 0 {
		t.Errorf("in doubt: %v; failed: %v", count.doubts, count.failures)
	}
	if stats.Won*2 < stats.Writes || calm.Won*2 < calm.Writes || kills < 3 {
		t.Errorf("too few were decided by the client, or %d kills are too few", kills)
	}
	told.check(t, c)
}

func (c *cluster) connectFar(delay time.Duration) *client.Client {
	c.t.Helper()
	var endpoints []string
	for _, n := range c.nodes {
		endpoints = append(endpoints, n.client)
	}
	native, err := client.New(client.Config{
		Endpoints: endpoints, DialTimeout: time.Second, DialOptions: []grpc.DialOption{dialFar(delay)},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return native
}

// revisions are the writes that were acknowledged, and at which revision.
type revisions struct {
	mu   sync.Mutex
	at   map[int64]string // "key value"
	took []time.Duration
}

func (r *revisions) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.at)
}

func (r *revisions) put(ctx context.Context, t *testing.T, native *client.Client, count *counters, prefix string) {
	random := rand.New(rand.NewPCG(uint64(len(prefix)), 7))
	for i := 0; ctx.Err() == nil; i++ {
		key, value, begun := fmt.Sprintf("%s-%d", prefix, random.IntN(50)), strconv.Itoa(i), time.Now()
		answer, err := native.Put(context.Background(), key, value)
		if count.failed(err) {
			continue
		}
		r.mu.Lock()
		if other := r.at[answer.Header.Revision]; other != "" {
			t.Errorf("revision %d was told for %q and for %q", answer.Header.Revision, other, key+" "+value)
		}
		r.at[answer.Header.Revision] = key + " " + value
		r.took = append(r.took, time.Since(begun))
		r.mu.Unlock()
	}
}

func (r *revisions) median() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := slices.Clone(r.took[:min(len(r.took), 200)])
	slices.Sort(first)
	return first[len(first)/2]
}

// check watches the whole history: each write that was told is in it once, at its revision, and nothing else of its kind.
func (r *revisions) check(t *testing.T, c *cluster) {
	t.Helper()
	plain := c.connect(c.nodes...)
	defer plain.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	now, err := plain.Get(ctx, "put", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int64{}
	for response := range plain.Watch(ctx, "put", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithProgressNotify()) {
		if err := response.Err(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for _, e := range response.Events {
			write := string(e.Kv.Key) + " " + string(e.Kv.Value)
			if seen[write] != 0 || r.at[e.Kv.ModRevision] != write {
				t.Errorf("%q is at revision %d, and at %d; told for that: %q", write, e.Kv.ModRevision, seen[write],
					r.at[e.Kv.ModRevision])
			}
			seen[write] = e.Kv.ModRevision
		}
		if len(seen) >= len(r.at) || response.Header.Revision > now.Header.Revision {
			break
		}
	}
	if len(seen) != len(r.at) {
		t.Errorf("%d writes are in the history, %d were told", len(seen), len(r.at))
	}
}
