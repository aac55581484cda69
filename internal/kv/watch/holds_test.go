package watch

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

func openStore(t testing.TB) *mvcc.Store {
	t.Helper()
	eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	store, err := mvcc.Open(eng, mvcc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// put writes keys, each at a revision of its own, and publishes them together.
func put(t testing.TB, store *mvcc.Store, hub *Hub, value []byte, keys ...string) {
	t.Helper()
	w := store.Begin()
	var events []kv.Event
	for _, key := range keys {
		w.BeginCommand()
		w.Put([]byte(key), value, 0)
		events = append(events, w.EndCommand()...)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	hub.Publish(store.Revision(), events)
}

func doneContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// drain reads a stream to the end and returns the number of events, of answers, and of calls of Next.
func drain(t testing.TB, s *Stream) (events, answers, calls int) {
	t.Helper()
	for ctx := doneContext(); ; calls++ {
		responses, err := s.Next(ctx)
		if errors.Is(err, context.Canceled) && !s.Lagging() {
			return events, answers, calls
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for i := range responses {
			if responses[i].Batch == nil {
				answers++
			} else {
				events += len(responses[i].Batch.Events)
			}
		}
	}
}

// The hub's lock, which applying needs, is released after watchersPerHold watchers, whatever a stream with very many watchers
// does; and resuming them all takes steps in proportion to their number, not to its square.
func TestStream_holdsAreShort(t *testing.T) {
	const watchers, writes = 20_000, 5_000
	for name, options := range map[string]Options{"from the store": {HistoryBytes: 1}, "from the history": {}} {
		t.Run(name, func(t *testing.T) {
			store, hub := openStore(t), NewHub(options)
			hub.Reset(store)
			keep := hub.Open() // so that the hub keeps a history
			defer keep.Close()
			keep.Create(Request{Key: []byte("other")})
			for i := 0; i < writes; i += 100 {
				keys := make([]string, 100)
				for k := range keys {
					keys[k] = fmt.Sprintf("w%06d", i+k)
				}
				put(t, store, hub, []byte("v"), keys...)
			}
			s := hub.Open()
			for i := range watchers {
				s.Create(Request{Key: fmt.Appendf(nil, "w%06d", i), Start: 2, ProgressNotify: true})
			}
			hub.longest = 0
			check := func(what string) {
				t.Helper()
				if hub.longest > watchersPerHold {
					t.Errorf("%s looks at %d watchers in one hold, at most %d are allowed", what, hub.longest, watchersPerHold)
				}
				hub.longest = 0
			}
			events, answers, calls := drain(t, s)
			if events != writes || answers != watchers {
				t.Errorf("%d events and %d answers, want %d and %d", events, answers, writes, watchers)
			}
			if most := 20 * (watchers/catchUpParties + writes/firstCatchUpRevisions); calls > most {
				t.Errorf("%d calls of Next, want at most %d", calls, most)
			}
			check("catching up")
			s.RequestProgress()
			s.Tick()
			check("asking for progress")
			if _, told, _ := drain(t, s); told != hub.options.StreamAnswers {
				t.Errorf("%d progress notifications, want as many as may wait: %d", told, hub.options.StreamAnswers)
			}
			s.Close()
			check("closing")
			if stats := hub.Stats(); stats.Watchers != 1 || stats.Behind != 0 || len(hub.accounts) != 1 {
				t.Errorf("%+v and %d accounts after closing", stats, len(hub.accounts))
			}
		})
	}
}

// The stream steps over the ids that the client chose itself, some at a time.
func TestStream_Create_stepsOverChosenIDs(t *testing.T) {
	hub := NewHub(Options{})
	hub.Reset(openStore(t))
	s := hub.Open()
	defer s.Close()
	const chosen = 10 * watchersPerHold
	for id := int64(0); id < chosen; id++ {
		s.Create(Request{Key: []byte("a"), ID: id + 1})
	}
	hub.longest = 0
	s.Create(Request{Key: []byte("a")})
	id, ok := s.Create(Request{Key: []byte("a")})
	if !ok || id != chosen+1 || hub.longest > watchersPerHold {
		t.Errorf("id %d %v, %d ids in one hold", id, ok, hub.longest)
	}
}

// The requests of a client that does not read are not read either: Accept waits once StreamAnswers wait, and continues when
// some were sent.
func TestStream_Accept_waitsForTheClientToRead(t *testing.T) {
	hub := NewHub(Options{StreamAnswers: 16})
	hub.Reset(openStore(t))
	s := hub.OpenFor("client")
	s.Create(Request{Key: []byte("a")})
	ctx, cancel := context.WithCancel(t.Context())
	requests := 0
	asked := make(chan error)
	go func() {
		for ; requests < 1000; requests++ {
			if err := s.Accept(ctx); err != nil {
				asked <- err
				return
			}
			s.RequestProgress()
		}
		asked <- nil
	}()
	for answers := 0; answers < 1001; {
		if _, waiting := s.size(); waiting > 16 {
			t.Fatalf("%d answers wait, at most 16 may", waiting)
		}
		responses, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		answers += len(responses)
	}
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	drain(t, s)
	for range 16 {
		s.RequestProgress()
	}
	cancel()
	if err := s.Accept(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Accept of a full stream: %v", err)
	}
	s.Close()
	if err := s.Accept(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Accept of a closed stream: %v", err)
	}
	if stats := hub.Stats(); stats != (Stats{}) {
		t.Errorf("%+v is left", stats)
	}
}

// Streams that no client reads keep no more than their own bound, and all those of a client no more than the client's. The
// events come all the same once the client reads.
func TestHub_ClientBytes(t *testing.T) {
	options := Options{StreamBytes: 64 << 10, ClientBytes: 256 << 10, HistoryBytes: 1}
	store, hub := openStore(t), NewHub(options)
	hub.Reset(store)
	const streams, writes = 40, 300
	var stalled []*Stream
	for i := range streams {
		s := hub.OpenFor("one")
		defer s.Close()
		s.Create(Request{Key: fmt.Appendf(nil, "k%d", i), End: []byte("l")}) // no two ranges are the same
		stalled = append(stalled, s)
	}
	other := hub.OpenFor("two")
	defer other.Close()
	other.Create(Request{Key: []byte("k"), End: []byte("l")})
	got := 0
	for range writes {
		put(t, store, hub, make([]byte, 1<<10), "kz")
		events, _, _ := drain(t, other)
		got += events
	}
	if got != writes {
		t.Errorf("the other client got %d events, want %d", got, writes)
	}
	const oneBatch = 4 << 10
	if waiting := hub.accounts["one"].waiting.Load(); waiting > options.ClientBytes+streams*oneBatch {
		t.Errorf("%d bytes wait for one client", waiting)
	}
	for _, s := range stalled {
		if bytes, _ := s.size(); bytes > options.StreamBytes+oneBatch {
			t.Errorf("%d bytes wait in one stream", bytes)
		}
	}
	for i, s := range stalled {
		if events, _, _ := drain(t, s); events != writes {
			t.Errorf("stream %d got %d events, want %d", i, events, writes)
		}
	}
	if waiting := hub.accounts["one"].waiting.Load(); waiting != 0 {
		t.Errorf("%d bytes are counted when all was sent", waiting)
	}
}

// Clients that read nothing leave room for others, however many they are, and get all events when they read at last.
func TestHub_TotalBytes(t *testing.T) {
	options := Options{StreamBytes: 256 << 10, ClientBytes: 256 << 10, TotalBytes: 512 << 10, HistoryBytes: 1}
	store, hub := openStore(t), NewHub(options)
	hub.Reset(store)
	const clients, writes, oneBatch = 20, 400, 4 << 10
	var stalled []*Stream
	for i := range clients {
		s := hub.OpenFor(fmt.Sprint(i))
		defer s.Close()
		s.Create(Request{Key: fmt.Appendf(nil, "k%d", i), End: []byte("l")})
		stalled = append(stalled, s)
	}
	for range writes {
		put(t, store, hub, make([]byte, 1<<10), "kz")
	}
	if waiting := hub.waitingBytes.Load(); waiting > options.TotalBytes*clients/(clients+1)+clients*oneBatch || waiting == 0 {
		t.Errorf("%d bytes wait for %d clients", waiting, clients)
	}
	for i, s := range stalled {
		if events, _, _ := drain(t, s); events != writes {
			t.Errorf("client %d got %d events, want %d", i, events, writes)
		}
	}
	if waiting := hub.waitingBytes.Load(); waiting != 0 {
		t.Errorf("%d bytes are counted when all was sent", waiting)
	}
}

// A step of catch-up gives a stream no more than its bound, however many different ranges want the same events.
func TestStream_catchUp_isBoundedInBytes(t *testing.T) {
	options := Options{StreamBytes: 128 << 10}
	store, hub := openStore(t), NewHub(options)
	hub.Reset(store)
	const watchers, writes = 500, 60
	for i := range writes { // every second event lies in no range, so that no batch is a part of the list
		put(t, store, hub, make([]byte, 100), fmt.Sprintf("k%03d", i), "z")
	}
	s := hub.Open()
	defer s.Close()
	for i := range watchers {
		s.Create(Request{Key: []byte("k"), End: fmt.Appendf(nil, "l%d", i), Start: 2})
	}
	events := 0
	for {
		responses, err := s.Next(doneContext())
		if err != nil && !s.Lagging() {
			break
		}
		for i := range responses {
			if responses[i].Batch != nil {
				events += len(responses[i].Batch.Events)
			}
		}
		if bytes, _ := s.size(); bytes > 2*options.StreamBytes+writes*1024 {
			t.Fatalf("%d bytes wait in the stream", bytes)
		}
	}
	if events != watchers*writes {
		t.Errorf("%d events, want %d", events, watchers*writes)
	}
}

// A slow stream that holds one event of a large publication must not keep the others in memory.
func TestPicked_list_copiesFewOfMany(t *testing.T) {
	events := make([]kv.Event, 100)
	for name, at := range map[string][]int{"one": {7}, "some in a row": {7, 8, 9}, "some with gaps": {1, 50}} {
		var p picked
		for _, i := range at {
			p.add(events, i)
		}
		list := p.list(events)
		if len(list) != len(at) || &list[0] == &events[at[0]] {
			t.Errorf("%s: %d events, a part of the whole list: %v", name, len(list), &list[0] == &events[at[0]])
		}
	}
	var all picked
	for i := range events {
		all.add(events, i)
	}
	if list := all.list(events); len(list) != len(events) || &list[0] != &events[0] {
		t.Error("all events were copied")
	}
}

// A client may have as much in watchers as is free for others, and more when others are gone; the total is bounded.
func TestStream_Create_WatcherBytes(t *testing.T) {
	hub := NewHub(Options{WatcherBytes: 10 * 1024})
	hub.Reset(openStore(t))
	a, b, other := hub.OpenFor("one"), hub.OpenFor("one"), hub.OpenFor("two")
	defer b.Close()
	defer other.Close()
	created := 0
	for i := range 100 {
		if _, ok := []*Stream{a, b}[i%2].Create(Request{Key: []byte("a")}); ok {
			created++
		}
	}
	if created != 10*1024/2/(watcherBytes+2) {
		t.Errorf("%d watchers were created", created)
	}
	if _, ok := other.Create(Request{Key: []byte("a")}); !ok {
		t.Error("another client is refused, too")
	}
	a.Close()
	if _, ok := b.Create(Request{Key: []byte("a")}); !ok {
		t.Error("refused although half of the watchers are gone")
	}
	for i := range 100 {
		more := hub.OpenFor(fmt.Sprint("more", i))
		defer more.Close()
		for range 10 {
			more.Create(Request{Key: []byte("a")})
		}
	}
	if got := hub.Stats().WatcherBytes; got > 10*1024 || got < 8*1024 {
		t.Errorf("the watchers of a hundred clients take %d bytes", got)
	}
}
