package process_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/test/history"
)

const (
	// farApart makes the round trip between members so long that answering early pays.
	farApart = "--peer-delay=3ms"
	// fastPause is the longest rest of a writer between writes: what is proposed at the same moment seldom gets the same
	// revision at every voter, and goes the slow way.
	fastPause    = 40 * time.Millisecond
	fastPatience = 30 * time.Second
	routeFast    = "fast"
	hotKey       = "fast/hot"
)

// fastWrite is an acknowledged write.
type fastWrite struct {
	through, key, value string
	revision            int64
	begun, ended        time.Duration
	route               string
}

// fastLoad writes through members, each writer through one of them alone, and keeps what it was told.
type fastLoad struct {
	t       *testing.T
	clock   time.Time
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	padding int           // of every value, so many bytes
	pause   time.Duration // at most, between the writes of a writer

	mu      sync.Mutex
	writers int
	writes  []fastWrite
	record  *history.Recorder // of failures alone
	wrong   []string
}

func startFastLoad(t *testing.T, nodes ...*node) *fastLoad {
	t.Helper()
	l := &fastLoad{t: t, clock: time.Now(), record: history.NewRecorder(), pause: fastPause}
	l.ctx, l.stop = context.WithCancel(context.Background())
	t.Cleanup(l.end)
	for _, n := range nodes {
		l.through(n)
	}
	return l
}

// end lets every writer finish what it does.
func (l *fastLoad) end() {
	l.stop()
	l.running.Wait()
}

// through adds a writer.
func (l *fastLoad) through(n *node) {
	l.t.Helper()
	client := dialAlone(l.t, n)
	l.writers++
	id := l.writers
	l.running.Go(func() {
		kv := pb.NewKVClient(client.ActiveConnection())
		for i := 0; l.ctx.Err() == nil; i++ {
			l.write(kv, n.name, id, i)
			select {
			case <-l.ctx.Done():
			case <-time.After(rand.N(l.pause)):
			}
		}
	})
}

// dialAlone connects to one member, soon again when it comes back.
func dialAlone(t *testing.T, n *node, more ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	soon := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.2, Jitter: 0.2, MaxDelay: 300 * time.Millisecond}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{n.client}, Logger: zap.NewNop(),
		DialOptions: append(more, grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// write puts a key of its own; now and then only if it is not there, which a second execution would tell; and now and then
// the key of all, which conflicts.
func (l *fastLoad) write(kv pb.KVClient, through string, id, i int) {
	w := fastWrite{through: through, key: fmt.Sprintf("fast/%d/%06d", id, i), value: fmt.Sprintf("%d-%d", id, i)}
	once := false
	switch i % 16 {
	case 5, 11:
		once = true
	case 15:
		w.key = hotKey
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "quorate-route", "?")
	var header metadata.MD
	var err error
	w.begun = time.Since(l.clock)
	put, succeeded := &pb.PutRequest{Key: []byte(w.key), Value: []byte(w.value + noise(w.value, l.padding))}, true
	if once {
		var done *pb.TxnResponse
		done, err = kv.Txn(ctx, &pb.TxnRequest{
			Compare: []*pb.Compare{{Key: put.Key, Target: pb.Compare_VERSION, TargetUnion: &pb.Compare_Version{}}},
			Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: put}}},
		}, grpc.Header(&header))
		w.revision, succeeded = done.GetHeader().GetRevision(), done.GetSucceeded()
	} else {
		var done *pb.PutResponse
		done, err = kv.Put(ctx, put, grpc.Header(&header))
		w.revision = done.GetHeader().GetRevision()
	}
	w.ended = time.Since(l.clock)
	if err != nil {
		l.record.Fail(err)
		return
	}
	w.route = strings.Join(header.Get("quorate-route"), "+")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = append(l.writes, w)
	if !succeeded {
		l.wrong = append(l.wrong, fmt.Sprintf("%s was there when it was written for the first time: %+v", w.key, w))
	}
}

// await waits until more writes, begun from now on, were answered on the fast path.
func (l *fastLoad) await(more int, when string) {
	l.t.Helper()
	from, deadline := time.Since(l.clock), time.Now().Add(fastPatience)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for ; time.Now().Before(deadline); <-look.C {
		if l.count(func(w *fastWrite) bool { return w.route == routeFast && w.begun >= from }) >= more {
			return
		}
	}
	l.t.Fatalf("%s: not %d writes on the fast path within %v; routes since then %v, before %v", when, more, fastPatience,
		l.routes(from, deadline.Sub(l.clock)), l.routes(0, from))
}

// tell logs what happened when.
func (l *fastLoad) tell(what string) {
	l.t.Helper()
	l.t.Logf("%v: %s", time.Since(l.clock).Round(time.Millisecond), what)
}

func (l *fastLoad) count(met func(w *fastWrite) bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for i := range l.writes {
		if met(&l.writes[i]) {
			n++
		}
	}
	return n
}

// routes says how many of the writes that began in a span were answered by each route.
func (l *fastLoad) routes(from, to time.Duration) map[string]int {
	routes := map[string]int{}
	l.count(func(w *fastWrite) bool {
		if w.begun >= from && w.begun < to {
			routes[w.route]++
		}
		return false
	})
	return routes
}

// check ends the load and looks for every acknowledged write at every one of some nodes.
func (l *fastLoad) check(nodes ...*node) {
	l.t.Helper()
	l.end()
	l.t.Logf("%d acknowledged writes, by route %v, %d errors", len(l.writes), l.routes(0, time.Hour), len(l.record.Failures()))
	checkFailures(l.t, l.record)
	for _, wrong := range append(l.wrong, orderFaults(l.writes)...) {
		l.t.Error(wrong)
	}
	for _, n := range nodes {
		l.checkAt(n)
	}
	l.tell("all was looked for at all members")
}

// orderFaults returns what is wrong with the revisions of writes: each must be told once, and a write that began after
// another one had ended must have the greater one.
func orderFaults(writes []fastWrite) (faults []string) {
	sorted := slices.SortedFunc(slices.Values(writes), func(a, b fastWrite) int { return cmp.Compare(a.revision, b.revision) })
	var last fastWrite // of those with smaller revisions the one that began last
	for i, w := range sorted {
		if i > 0 && w.revision == sorted[i-1].revision {
			faults = append(faults, fmt.Sprintf("one revision was told twice: %+v and %+v", sorted[i-1], w))
		}
		if i > 0 && w.ended < last.begun {
			faults = append(faults, fmt.Sprintf("the earlier write has the greater revision: %+v, then %+v", w, last))
		}
		if i == 0 || w.begun > last.begun {
			last = w
		}
	}
	return faults
}

// checkAt reads every acknowledged write at its revision from one node's own state, once that shows everything.
func (l *fastLoad) checkAt(n *node) {
	l.t.Helper()
	client := dialAlone(l.t, n)
	ctx, cancel := context.WithTimeout(context.Background(), 2*fastPatience)
	defer cancel()
	if _, err := client.Get(ctx, hotKey); err != nil {
		l.t.Fatalf("read from %s: %v", n.name, err)
	}
	const readers = 8
	var reading sync.WaitGroup
	for r := range readers {
		reading.Go(func() {
			for i := r; i < len(l.writes); i += readers {
				w := &l.writes[i]
				got, err := client.Get(ctx, w.key, clientv3.WithRev(w.revision), clientv3.WithSerializable())
				if err != nil {
					l.t.Errorf("%s: %+v: %v", n.name, *w, err)
					return
				}
				want := w.value + noise(w.value, l.padding)
				if len(got.Kvs) != 1 || got.Kvs[0].ModRevision != w.revision || string(got.Kvs[0].Value) != want ||
					w.key != hotKey && got.Kvs[0].Version != 1 {
					l.t.Errorf("%s has %.300v where %+v was acknowledged", n.name, got.Kvs, *w)
				}
			}
		})
	}
	reading.Wait()
	l.checkOnce(ctx, n, client)
}

// checkOnce wants every key that has one writer to have been written once, whether that was acknowledged or not.
func (l *fastLoad) checkOnce(ctx context.Context, n *node, client *clientv3.Client) {
	l.t.Helper()
	all, err := client.Get(ctx, "fast/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		if string(kv.Key) != hotKey && (kv.Version != 1 || kv.CreateRevision != kv.ModRevision) {
			l.t.Errorf("%s has written %s more than once: %v", n.name, kv.Key, kv)
		}
	}
}

var metricLine = regexp.MustCompile(`(?m)^(quorate_(?:fast|proposals)_[a-z_]+)(?:\{[^}]*\})? (\S+)$`)

// fastMetrics are the numbers of a node that tell of the fast path; those that differ only in a label are added up.
func fastMetrics(t *testing.T, n *node) map[string]float64 {
	t.Helper()
	answer, err := http.Get(n.client + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	metrics := map[string]float64{}
	for _, line := range metricLine.FindAllSubmatch(text, -1) {
		value, err := strconv.ParseFloat(string(line[2]), 64)
		if err != nil {
			t.Fatal(err)
		}
		metrics[string(line[1])] += value
	}
	return metrics
}

// sumOf adds one of these numbers up over nodes.
func sumOf(t *testing.T, name string, nodes ...*node) (sum float64) {
	t.Helper()
	for _, n := range nodes {
		value, told := fastMetrics(t, n)[name]
		if !told {
			t.Fatalf("%s does not tell %s", n.name, name)
		}
		sum += value
	}
	return sum
}
