package watch

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/quorate/quorate/internal/kv"
)

// unread opens streams of a client that watch from the first revision on, and lets each read a step that the client does not
// take.
func unread(t *testing.T, hub *Hub, client string, streams int) (list []*Stream) {
	t.Helper()
	for range streams {
		s := hub.OpenFor(client)
		t.Cleanup(s.Close)
		s.Create(Request{Key: []byte("k"), End: []byte("l"), Start: 1, PrevKV: true})
		list = append(list, s)
	}
	for range 3 { // the answer to the creation, then events, then those that the next step reads
		for _, s := range list {
			if bytes, _ := s.size(); bytes < 10<<10 {
				_, _ = s.Next(doneContext())
			}
		}
	}
	return list
}

// A client with many streams that catch up, and that reads none of them, has its share of memory, and gets a large revision in
// a few of them only. Other clients are served meanwhile, and in the end all streams get everything.
func TestStream_catchUp_manyUnread(t *testing.T) {
	options := Options{StreamBytes: 1 << 20, ClientBytes: 2 << 20, TotalBytes: 8 << 20, HistoryBytes: 1}
	store, hub := openStore(t), NewHub(options)
	hub.Reset(store)
	const streams, writes, size = 200, 10, 200 << 10
	for i := range writes {
		put(t, store, hub, make([]byte, size), fmt.Sprintf("k%d", i))
	}
	stalled := unread(t, hub, "one", streams)
	const oneBatch = 2*size + 1024
	most := 3*options.ClientBytes + oneBatch + streams*4*responseBytes // the overdrafts were granted while there was room
	if waiting := hub.accounts["one"].waiting.Load(); waiting > most || waiting < options.ClientBytes/2 {
		t.Errorf("%d bytes wait for one client, want at most %d", waiting, most)
	}
	other := hub.OpenFor("two")
	defer other.Close()
	other.Create(Request{Key: []byte("k"), End: []byte("l"), Start: 1})
	if events, _, _ := drain(t, other); events != writes {
		t.Errorf("another client got %d events, want %d", events, writes)
	}
	if hub.Stats().Overdrawn == 0 {
		t.Error("no stream is counted that waits for others to read")
	}
	for i, s := range stalled[:streams/2] { // the bytes that the other streams held are free
		s.Close()
		if hub.accounts["one"].overdrafts > 2*maxOverdrafts {
			t.Fatalf("%d overdrafts when stream %d was closed", hub.accounts["one"].overdrafts, i)
		}
	}
	counts := make([]int, streams)
	for round, lagging := 0, true; round < 10*streams && lagging; round++ {
		lagging = false
		for i, s := range stalled[streams/2:] {
			responses, _ := s.Next(doneContext())
			for r := range responses {
				if batch := responses[r].Batch; batch != nil {
					counts[streams/2+i] += len(batch.Events)
				}
			}
			lagging = lagging || s.Lagging()
		}
	}
	for i, count := range counts[streams/2:] { // batches that unread handed out are not counted
		if s := stalled[streams/2+i]; s.Lagging() || count == 0 {
			t.Errorf("stream %d got %d events, and is behind: %t", i, count, s.Lagging())
		}
	}
	for _, s := range stalled {
		s.Close()
	}
	if left := hub.overdrafts.queued.Load(); left != 0 || hub.overdrafts.accounts.Len() != 0 {
		t.Errorf("%d streams of %d clients wait when all have gone", left, hub.overdrafts.accounts.Len())
	}
}

// Many clients that read nothing get no more large revisions together than fit in memory. When they go, others get theirs.
func TestStream_catchUp_manyClientsUnread(t *testing.T) {
	options := Options{StreamBytes: 1 << 20, ClientBytes: 1 << 20, TotalBytes: 2 << 20, HistoryBytes: 1, RevisionBytes: 8 << 20}
	store, hub := openStore(t), NewHub(options)
	hub.Reset(store)
	const clients, size = 40, 1 << 20
	put(t, store, hub, make([]byte, size), "k1")
	var stalled []*Stream
	for i := range clients {
		stalled = append(stalled, unread(t, hub, fmt.Sprint("client", i), 2)...)
	}
	const oneBatch = 2*size + 1024
	if waiting, most := hub.waitingBytes.Load(), overdraftTimes*options.TotalBytes+oneBatch; waiting > most || waiting < oneBatch {
		t.Errorf("%d bytes wait for %d clients, want at most %d", waiting, clients, most)
	}
	for _, s := range stalled[:2*clients-2] {
		s.Close()
	}
	for _, s := range stalled[2*clients-2:] {
		events := 0
		for range 10 {
			responses, _ := s.Next(doneContext())
			for i := range responses {
				if batch := responses[i].Batch; batch != nil {
					events += len(batch.Events)
				}
			}
		}
		if s.Lagging() {
			t.Errorf("a stream of the last client got %d events, and is behind", events)
		}
		s.Close()
	}
	if left := hub.overdrafts.overdrawn; left != 0 {
		t.Errorf("%d bytes are overdrawn when all have gone", left)
	}
}

// Ensure that what waits for many clients which read nothing has a bound for all of them together, also where each of their
// streams may take a little in any case: 64 KiB for each stream of each client came on top of the bound before.
func TestStream_catchUp_allClientsBounded(t *testing.T) {
	options := Options{StreamBytes: 1 << 20, ClientBytes: 1 << 20, TotalBytes: 1 << 20, HistoryBytes: 1}
	store, hub := openStore(t), NewHub(options)
	hub.Reset(store)
	const clients, streams, size = 60, 8, 25 << 10
	for range 2 {
		put(t, store, hub, make([]byte, size), "k1")
	}
	for i := range clients {
		unread(t, hub, fmt.Sprint("client", i), streams) // each reads the store by itself
	}
	most := (mostTimes + 1 + overdraftTimes) * options.TotalBytes
	t.Logf("%d bytes wait", hub.waitingBytes.Load())
	if waiting := hub.waitingBytes.Load(); waiting > most || waiting < options.TotalBytes {
		t.Errorf("%d bytes wait for %d clients, want at most %d", waiting, clients, most)
	}
	if !hub.Scarce() {
		t.Error("nothing is scarce")
	}
}

// The same for streams in step that each watch another range, so that they share no batch.
func TestHub_Publish_manyUnread(t *testing.T) {
	options := Options{StreamBytes: 1 << 20, ClientBytes: 2 << 20, TotalBytes: 8 << 20, HistoryBytes: 1}
	store, hub := openStore(t), NewHub(options)
	hub.Reset(store)
	const streams, writes, size = 200, 3, 200 << 10
	var stalled []*Stream
	for i := range streams {
		s := hub.OpenFor("one")
		defer s.Close()
		s.Create(Request{Key: []byte("k"), End: fmt.Appendf(nil, "l%d", i)})
		drain(t, s) // the answer to the creation
		stalled = append(stalled, s)
	}
	for range writes {
		put(t, store, hub, make([]byte, size), "k")
		for _, s := range stalled[streams/2:] {
			_, _ = s.Next(doneContext()) // handed out, and not sent
			break
		}
	}
	if waiting := hub.accounts["one"].waiting.Load(); waiting > options.ClientBytes+16*2*(size+1024) {
		t.Errorf("%d bytes wait for one client", waiting)
	}
	counts := make([]int, streams)
	for round, lagging := 0, true; round < 10*streams && lagging; round++ {
		lagging = false
		for i, s := range stalled {
			responses, _ := s.Next(doneContext())
			for r := range responses {
				counts[i] += len(responses[r].Batch.Events)
			}
			lagging = lagging || s.Lagging() || len(responses) > 0
		}
	}
	for i, count := range counts {
		if count != writes && i != streams/2 { // some of its events were handed out before
			t.Errorf("stream %d got %d events, want %d", i, count, writes)
		}
	}
}

// Streams that hold large revisions and are not read do not stop streams of the same client that watch small ones.
func TestStream_catchUp_smallBesideStuck(t *testing.T) {
	options := Options{StreamBytes: 1 << 20, ClientBytes: 1 << 20, TotalBytes: 8 << 20, HistoryBytes: 1}
	store, hub := openStore(t), NewHub(options)
	hub.Reset(store)
	for i := range 10 {
		put(t, store, hub, make([]byte, 200<<10), fmt.Sprintf("k%d", i))
		put(t, store, hub, make([]byte, 100), fmt.Sprintf("s%d", i))
	}
	unread(t, hub, "one", 50)
	if free := hub.accounts["one"].free(&hub.options); free > 0 {
		t.Fatalf("%d bytes are left", free)
	}
	small := hub.OpenFor("one")
	defer small.Close()
	small.Create(Request{Key: []byte("s"), End: []byte("t"), Start: 1})
	if events, _, _ := drain(t, small); events != 10 {
		t.Errorf("got %d events, want 10", events)
	}
	both := hub.OpenFor("one")
	defer both.Close()
	both.Create(Request{ID: 1, Key: []byte("k"), End: []byte("l"), Start: 1})
	both.Create(Request{ID: 2, Key: []byte("s"), End: []byte("t"), Start: 1})
	events := map[int64]int{}
	for range 10 {
		responses, _ := both.Next(doneContext())
		for _, r := range responses {
			if r.Batch != nil {
				events[r.WatchID] += len(r.Batch.Events)
			}
		}
	}
	if events[1] != 0 || events[2] != 10 || !both.overdraft.queued.Load() {
		t.Errorf("in one stream: got %v, want 10 small events, and that the stream waits for an overdraft", events)
	}
}

// A stream that is closed during a step of catch-up takes no overdraft, and no place among the streams that wait for one.
func TestStream_Close_duringStep(t *testing.T) {
	options := Options{StreamBytes: 1 << 20, ClientBytes: 1 << 20, TotalBytes: 8 << 20, HistoryBytes: 1}
	store, hub := openStore(t), NewHub(options)
	hub.Reset(store)
	for i := range 10 {
		put(t, store, hub, make([]byte, 200<<10), fmt.Sprintf("k%d", i))
	}
	stuck := unread(t, hub, "one", 50)
	s := hub.OpenFor("one")
	s.Create(Request{Key: []byte("k"), End: []byte("l"), Start: 1})
	c := s.plan(0)
	if err := c.read(store, 1, 1<<20); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.finish(&c)
	if s.overdraft.queued.Load() || s.overdraft.held.Load() {
		t.Errorf("a closed stream waits for an overdraft: %t, has one: %t", s.overdraft.queued.Load(), s.overdraft.held.Load())
	}
	for _, s := range stuck {
		s.Close()
	}
	if left := hub.overdrafts.queued.Load(); left != 0 {
		t.Errorf("%d streams wait when all have gone", left)
	}
}

// A batch keeps only its own events in memory.
func TestStream_catchUp_keepsOwnEvents(t *testing.T) {
	store, hub := openStore(t), NewHub(Options{StreamBytes: 100 << 10, HistoryBytes: 1})
	hub.Reset(store)
	put(t, store, hub, []byte("small"), "k1")
	put(t, store, hub, make([]byte, 1<<20), "k2")
	s := hub.Open()
	defer s.Close()
	s.Create(Request{Key: []byte("k"), End: []byte("l"), Start: 1})
	responses, _ := s.Next(doneContext())
	if len(responses) != 2 {
		t.Fatalf("got %+v, want that the watch is created, and a batch", responses)
	}
	kept := 0
	for events := responses[1].Batch.Events; kept < cap(events); kept++ {
		if e := events[:cap(events)][kept]; len(e.KV.Value) > 1000 {
			t.Errorf("a value of %d bytes is in memory beyond %d events", len(e.KV.Value), len(events))
		}
	}
}

// A watch that begins in the middle of a large publication gets the rest of it.
func TestStream_catchUp_middleOfPublication(t *testing.T) {
	store, hub := openStore(t), NewHub(Options{StreamBytes: 100 << 10, HistoryBytes: 8 << 20})
	hub.Reset(store)
	inStep := hub.Open() // so that the hub keeps a history
	defer inStep.Close()
	inStep.Create(Request{Key: []byte("k"), End: []byte("l")})
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprintf("k%d", i))
	}
	put(t, store, hub, make([]byte, 20<<10), keys...)
	s := hub.Open()
	defer s.Close()
	s.Create(Request{Key: []byte("k"), End: []byte("l"), Start: store.Revision() - 1})
	got := 0
	for calls := 0; s.Lagging() && calls < 100; calls++ {
		responses, _ := s.Next(doneContext())
		for _, r := range responses {
			if r.Batch != nil {
				got += len(r.Batch.Events)
			}
		}
	}
	if got != 2 {
		t.Errorf("got %d events, want 2", got)
	}
}

// A stream that was handed more than its bound makes its next step as soon as that is sent: no other event may wake it.
func TestStream_Next_afterLargeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hub := openStore(t), NewHub(Options{StreamBytes: 10 << 10})
		hub.Reset(store)
		s := hub.Open()
		defer s.Close()
		s.Create(Request{ID: 1, Key: []byte("k"), End: []byte("l")})
		s.Create(Request{ID: 2, Key: []byte("k"), End: []byte("m")}) // falls behind: the first has taken more than the bound
		drain(t, s)
		for len(s.wake) > 0 {
			<-s.wake
		}
		put(t, store, hub, make([]byte, 20<<10), "k1")
		<-s.wake // both have signalled, which is one signal
		told := map[int64]int{}
		go func() {
			for {
				responses, err := s.Next(t.Context())
				if err != nil {
					return
				}
				for _, r := range responses {
					told[r.WatchID]++
				}
			}
		}()
		if synctest.Wait(); told[1] != 1 || told[2] != 1 {
			t.Errorf("told: %v, want each watch once", told)
		}
		s.Close()
	})
}

// A watcher that wants the previous pairs of a revision with too many of them is cancelled with a reason. All others in the
// same stream continue: those that do not want them, and those that watch other keys.
func TestStream_catchUp_largeRevision(t *testing.T) {
	store, hub := openStore(t), NewHub(Options{HistoryBytes: 1, RevisionBytes: 100 << 10})
	hub.Reset(store)
	const keys = 50
	for i := range keys {
		put(t, store, hub, make([]byte, 10<<10), fmt.Sprintf("k%02d", i))
	}
	deletion := store.Revision() + 1
	w := store.Begin()
	w.BeginCommand()
	w.DeleteRange([]byte("k"), []byte("l"), nil)
	w.EndCommand()
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	hub.Advance(store.Revision())
	put(t, store, hub, []byte("v"), "a", "k00")
	s := hub.Open()
	defer s.Close()
	events, reasons := map[int64]int{}, map[int64]error{}
	for _, r := range []Request{
		{ID: 1, Key: []byte("k"), End: []byte("l"), Start: 1, PrevKV: true},
		{ID: 2, Key: []byte("k"), End: []byte("l"), Start: 1},
		{ID: 3, Key: []byte("a"), Start: 1, PrevKV: true},
		{ID: 4, Key: []byte("k07"), Start: deletion, PrevKV: true}, // small, and so sent
		{ID: 5, Key: []byte("k"), End: []byte("l"), Start: deletion, PrevKV: true},
		{ID: 6, Key: []byte("k"), End: []byte("l"), Start: deletion + 1, PrevKV: true},
		{ID: 7, Key: []byte("k"), End: []byte("l"), Start: deletion, PrevKV: true, NoDelete: true}, // sees no deletion
	} {
		s.Create(r)
	}
	for s.Lagging() {
		responses, err := s.Next(doneContext())
		if err != nil && len(responses) > 0 {
			t.Fatal(err)
		}
		for _, r := range responses {
			switch {
			case r.Batch != nil:
				events[r.WatchID] += len(r.Batch.Events)
			case r.Canceled:
				reasons[r.WatchID] = r.Err
			}
		}
	}
	want := map[int64]int{1: keys, 2: 2*keys + 1, 3: 1, 4: 1, 6: 1, 7: 1}
	if !maps.Equal(events, want) {
		t.Errorf("events of each watch: got %v, want %v", events, want)
	}
	if len(reasons) != 2 || !errors.Is(reasons[1], ErrLargeRevision) || !errors.Is(reasons[5], ErrLargeRevision) {
		t.Errorf("cancelled: %v, want 1 and 5 for a large revision", reasons)
	}
}

// Few streams of a client read the store at once; the others wait for those, not for their clients.
func TestStream_catchUp_readsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hub := openStore(t), NewHub(Options{HistoryBytes: 1})
		hub.Reset(store)
		put(t, store, hub, []byte("v"), "k")
		s := hub.OpenFor("one")
		defer s.Close()
		s.Create(Request{Key: []byte("k"), Start: kv.Revision(1)})
		for range maxReads {
			s.account.reads <- struct{}{}
		}
		var got []Response
		go func() { got, _ = s.Next(t.Context()) }()
		if synctest.Wait(); got != nil {
			t.Errorf("a step was made beside %d others: %+v", maxReads, got)
		}
		<-s.account.reads
		if synctest.Wait(); len(got) == 0 {
			t.Error("no step was made when another ended")
		}
	})
}
