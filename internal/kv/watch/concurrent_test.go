package watch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
)

// ranged is a watcher's range in the tests.
type ranged struct{ key, end string }

func (r ranged) has(key string) bool {
	switch {
	case r.end == "":
		return key == r.key
	case r.end == "\x00":
		return key >= r.key
	}
	return key >= r.key && key < r.end
}

func randomRange(rng *rand.Rand) ranged {
	letter := func() string { return string(rune('a' + rng.Intn(20))) }
	switch rng.Intn(4) {
	case 0:
		return ranged{letter(), ""}
	case 1:
		return ranged{letter(), "\x00"}
	}
	r := ranged{letter(), letter()}
	if r.key > r.end {
		r.key, r.end = r.end, r.key
	}
	if r.key == r.end {
		r.end += "x"
	}
	return r
}

// Many ranges, coming and going: every watcher gets the events of its own range and no others.
func TestHub_Publish_against_list(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	src := newSource(t, watch.Options{})
	s := src.hub.Open()
	defer s.Close()
	live := map[int64]ranged{}
	for round := 0; round < 300; round++ {
		for i := rng.Intn(20); i > 0; i-- {
			r := randomRange(rng)
			id, ok := s.Create(request(r.key, r.end, 0))
			if !ok {
				t.Fatalf("%q is refused", r)
			}
			live[id] = r
		}
		for id := range live {
			if rng.Intn(10) == 0 {
				s.Cancel(id)
				delete(live, id)
			}
		}
		poll(t, s)
		key := string(rune('a' + rng.Intn(20)))
		src.write(key + "=1")
		got := map[int64]bool{}
		responses, err := s.Next(doneContext())
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for _, r := range responses {
			if got[r.WatchID] || r.Batch == nil || string(r.Batch.Events[0].KV.Key) != key {
				t.Fatalf("round %d: %+v", round, r)
			}
			got[r.WatchID] = true
		}
		for id, r := range live {
			if got[id] != r.has(key) {
				t.Fatalf("round %d: %q and key %s: told %v", round, r, key, got[id])
			}
			delete(got, id)
		}
		if len(got) != 0 {
			t.Fatalf("round %d: cancelled watchers are told: %v", round, got)
		}
	}
}

func doneContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// viewer reads one stream and keeps the events of each watcher.
type viewer struct {
	hub    *watch.Hub
	stream *watch.Stream
	rng    *rand.Rand
	mu     sync.Mutex
	ranges map[int64]ranged
	starts map[int64]kv.Revision
	seen   map[int64][]kv.Event
	ended  map[int64]kv.Revision // compacted
	broken string
}

func (v *viewer) create(start kv.Revision) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := randomRange(v.rng)
	req := request(r.key, r.end, start)
	id, _ := v.stream.Create(req)
	v.ranges[id], v.starts[id] = r, start
}

// read takes responses while the writer writes, then the rest, and then requests progress.
func (v *viewer) read(writing context.Context, slow bool) {
	if slow { // the slowest reader: it reads when the writer has stopped
		<-writing.Done()
	}
	for over := false; !over; {
		if writing.Err() == nil { // the writer has stopped: progress would be answered for ever
			v.stream.RequestProgress()
		}
		responses, err := v.stream.Next(writing)
		if err != nil && !errors.Is(err, context.Canceled) {
			v.fail("Next: %v", err)
			return
		}
		v.takeAll(responses)
		over = err != nil && !v.stream.Lagging()
	}
	if len(v.ended) == len(v.ranges) { // no watcher is left to make progress
		return
	}
	v.stream.RequestProgress()
	responses, err := v.stream.Next(context.Background())
	if err != nil || len(responses) != 1 || responses[0].Revision != v.hub.Revision() {
		v.fail("in the end: %v, %v", responses, err)
	}
}

func (v *viewer) takeAll(responses []watch.Response) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range responses {
		v.take(&responses[i])
	}
}

func (v *viewer) fail(format string, args ...any) {
	if v.broken == "" {
		v.broken = fmt.Sprintf(format, args...)
	}
}

func (v *viewer) take(r *watch.Response) {
	switch {
	case r.Created:
		if v.starts[r.WatchID] == 0 {
			v.starts[r.WatchID] = r.Revision + 1
		}
	case r.Compact != 0:
		v.ended[r.WatchID] = r.Compact
	case r.Batch != nil:
		seen := v.seen[r.WatchID]
		if n := len(seen); n > 0 && seen[n-1].KV.ModRevision >= r.Batch.Events[0].KV.ModRevision {
			v.fail("watcher %d got revision %d after %d", r.WatchID, r.Batch.Events[0].KV.ModRevision, seen[n-1].KV.ModRevision)
		}
		v.seen[r.WatchID] = append(seen, r.Batch.Events...)
	default:
		for id, end := range v.seen { // invariant 2
			if n := len(end); n > 0 && end[n-1].KV.ModRevision > r.Revision {
				v.fail("progress %d came after revision %d of watcher %d", r.Revision, end[n-1].KV.ModRevision, id)
			}
		}
	}
}

// check compares the events of every watcher with the writes: exactly the events of its range, from its start to the end or to
// the compaction that overtook it.
func (v *viewer) check(t *testing.T, all []kv.Event) {
	t.Helper()
	if v.broken != "" {
		t.Fatal(v.broken)
	}
	for id, r := range v.ranges {
		var want []string
		for i := range all {
			if all[i].KV.ModRevision >= v.starts[id] && r.has(string(all[i].KV.Key)) {
				want = append(want, tellEvent(&all[i], false))
			}
		}
		var got []string
		for i := range v.seen[id] {
			got = append(got, tellEvent(&v.seen[id][i], false))
		}
		if _, overtaken := v.ended[id]; overtaken && len(got) <= len(want) {
			want = want[:len(got)]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("watcher %d of %q from %d saw %d events, want %d", id, r, v.starts[id], len(got), len(want))
		}
	}
}

// One writer, streams that come while it writes, some of them slow and some overtaken by compaction, and stores that are
// replaced under the hub: every watcher gets every event once, in order.
func TestHub_exactly_once_in_order(t *testing.T) {
	for seed := int64(1); seed <= 6; seed++ {
		t.Logf("seed %d", seed)
		exactlyOnce(t, seed, 12, "", watch.Options{StreamResponses: 8, HistoryBytes: 4 << 10})
	}
}

// The same for streams of one client without any room: each revision that they catch up with needs an overdraft.
func TestHub_exactly_once_by_overdrafts(t *testing.T) {
	for seed := int64(1); seed <= 4; seed++ {
		t.Logf("seed %d", seed)
		exactlyOnce(t, seed, 60, "one", watch.Options{StreamBytes: 100, ClientBytes: 1000, TotalBytes: 2000, HistoryBytes: 1})
	}
}

func exactlyOnce(t *testing.T, seed int64, streams int, client string, options watch.Options) {
	rng := rand.New(rand.NewSource(seed))
	src := newSource(t, options)
	const writes = 1200
	var wg sync.WaitGroup
	var viewers []*viewer
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range streams {
		v := &viewer{
			hub: src.hub, stream: src.hub.OpenFor(client), rng: rand.New(rand.NewSource(seed*100 + int64(i))), ranges: map[int64]ranged{},
			starts: map[int64]kv.Revision{}, seen: map[int64][]kv.Event{}, ended: map[int64]kv.Revision{},
		}
		defer v.stream.Close()
		viewers = append(viewers, v)
		v.create(0)
	}
	for i, v := range viewers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			v.read(ctx, i%3 == 0)
		}()
	}
	for n := 0; src.store.Revision() < writes; n++ {
		var batch []string
		for k := 1 + rng.Intn(4); k > 0; k-- {
			batch = append(batch, fmt.Sprintf("%c=%d %c=%d", 'a'+rng.Intn(20), n, 'a'+rng.Intn(20), n))
		}
		src.write(batch...)
		switch rng.Intn(40) {
		case 0:
			src.compact(src.store.Revision() - kv.Revision(rng.Intn(3)))
		case 1:
			src.hub.Detach()
			src.hub.Reset(src.store)
		case 2, 3:
			viewers[rng.Intn(len(viewers))].create(kv.Revision(max(1, int(src.store.Revision())-rng.Intn(30))))
		}
	}
	cancel()
	wg.Wait()
	for _, v := range viewers {
		v.check(t, src.all)
	}
}

func BenchmarkHub_Publish(b *testing.B) {
	for _, c := range []struct {
		name              string
		watchers, streams int
		own               bool
	}{
		{"nobody", 0, 0, false},
		{"1000 watchers of the key on 1000 streams", 1000, 1000, false},
		{"1000 watchers of the key on 1 stream", 1000, 1, false},
		{"10000 watchers of other ranges", 10000, 10, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			src := newSource(b, watch.Options{})
			var streams []*watch.Stream
			for i := 0; i < c.streams; i++ {
				streams = append(streams, src.hub.Open())
			}
			for i := 0; i < c.watchers; i++ {
				req := request("key", "kez", 0)
				if c.own {
					req = request(fmt.Sprintf("z%06d", i), fmt.Sprintf("z%06dx", i), 0)
				}
				streams[i%c.streams].Create(req)
			}
			events := []kv.Event{{KV: kv.KeyValue{Key: []byte("key"), Value: make([]byte, 256)}}}
			rev := src.store.Revision()
			b.ReportAllocs()
			for b.Loop() {
				rev++
				next := slices.Clone(events)
				next[0].KV.ModRevision = rev
				if src.hub.Wanted() {
					src.hub.Publish(rev, next)
				} else {
					src.hub.Advance(rev)
				}
				if rev%64 == 0 {
					for _, s := range streams {
						_, _ = s.Next(doneContext())
					}
				}
			}
		})
	}
}

func ExampleHub() {
	src := newSource(&testing.T{}, watch.Options{})
	stream := src.hub.Open()
	defer stream.Close()
	src.write("stock/1=7")
	stream.Create(watch.Request{Key: []byte("stock/"), End: []byte("stock0"), Start: 2, PrevKV: true})
	src.write("stock/1=6", "stock/2=9")
	fmt.Println(poll(&testing.T{}, stream))
	src.write("-stock/1")
	fmt.Println(poll(&testing.T{}, stream))
	// Output:
	// 0@2 created
	// 0@4 stock/1=7@2 stock/1=6@3(7@2) stock/2=9@4
	// 0@5 -stock/1@5(6@3)
}

// A watcher that starts in the past gets its events although no write follows: the goroutine that takes the answer to its
// creation, at whichever moment, finds it behind. Otherwise the stream would sleep until the next event.
func TestStream_Create_behindWhileNextWaits(t *testing.T) {
	src := newSource(t, watch.Options{})
	src.write("a=1")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	rounds := 20000
	if testing.Short() {
		rounds = 4000
	}
	for round := range rounds {
		s := src.hub.Open()
		go s.Create(request("a", "", 1))
		for seen := false; !seen; {
			responses, err := s.Next(ctx)
			if err != nil {
				t.Fatalf("round %d: %v, and the watcher has seen nothing", round, err)
			}
			for i := range responses {
				seen = seen || responses[i].Batch != nil
			}
		}
		s.Close()
	}
}
