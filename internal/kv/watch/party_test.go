package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// told is the events that a watcher of the test should get, and has got.
type told struct {
	key, end string
	from     kv.Revision // its first revision
	last     kv.Revision // the last that it got
	closed   kv.Revision // the last revision that it may get, if it was cancelled
}

// checked is a batch that was found to be right, for watchers of a range with the same position.
type checked struct {
	batch    *Batch
	key, end string
	from     kv.Revision
}

// model is streams with very many watchers of very few ranges, and all writes.
type model struct {
	t       *testing.T
	rng     *rand.Rand
	hub     *Hub
	streams []*Stream
	watched []map[int64]*told
	checked map[checked]bool
	all     []kv.Event
}

var rangesOfModel = [][2]string{{"a", ""}, {"a", "c"}, {"b", ""}, {"b", "z"}}

func (m *model) create(stream, n int) {
	rev := m.hub.Revision()
	r := rangesOfModel[m.rng.Intn(len(rangesOfModel))]
	start := kv.Revision(0)
	switch m.rng.Intn(4) {
	case 0:
		start = max(1, rev-kv.Revision(m.rng.Intn(20)))
	case 1:
		start = rev + kv.Revision(m.rng.Intn(10))
	}
	for range n {
		id, ok := m.streams[stream].Create(Request{Key: []byte(r[0]), End: []byte(r[1]), Start: start})
		if !ok {
			m.t.Fatal("a watcher is refused")
		}
		w := &told{key: r[0], end: r[1], from: start}
		if start == 0 {
			w.from = rev + 1
		}
		m.watched[stream][id] = w
	}
}

func (m *model) cancel(stream, n int) {
	for id, w := range m.watched[stream] {
		if n--; n < 0 {
			return
		}
		if w.closed == 0 {
			w.closed = m.hub.Revision()
			m.streams[stream].Cancel(id)
		}
	}
}

// read takes up to times results of Next from a stream.
func (m *model) read(stream, times int) {
	ctx, s := doneContext(), m.streams[stream]
	for range times {
		responses, err := s.Next(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			m.t.Fatal(err)
		}
		for i := range responses {
			if responses[i].Batch != nil {
				m.take(stream, &responses[i])
			}
		}
		if err != nil && !s.Lagging() {
			return
		}
	}
}

// take checks that a batch has exactly the events between the watcher's position and the end of the batch.
func (m *model) take(stream int, r *Response) {
	w := m.watched[stream][r.WatchID]
	of := checked{batch: r.Batch, key: w.key, end: w.end, from: max(w.from, w.last+1)}
	w.last = r.Batch.Revision
	if w.closed != 0 && w.last > w.closed {
		m.t.Fatalf("stream %d, watcher %d of %+v is told of revision %d", stream, r.WatchID, *w, w.last)
	}
	if m.checked[of] { // for another watcher that was to get the same
		return
	}
	m.checked[of] = true
	i := 0
	for _, ev := range m.since(of.key, of.end, of.from) {
		if ev.KV.ModRevision > r.Batch.Revision {
			break
		}
		if i >= len(r.Batch.Events) || r.Batch.Events[i].KV.ModRevision != ev.KV.ModRevision ||
			string(r.Batch.Events[i].KV.Key) != string(ev.KV.Key) {
			m.t.Fatalf("stream %d, watcher %d of %+v: event %d of %d up to revision %d is not %s at %d",
				stream, r.WatchID, *w, i, len(r.Batch.Events), r.Batch.Revision, ev.KV.Key, ev.KV.ModRevision)
		}
		i++
	}
	if i != len(r.Batch.Events) {
		m.t.Fatalf("stream %d, watcher %d of %+v: %d events, want %d", stream, r.WatchID, *w, len(r.Batch.Events), i)
	}
}

// since returns the events of a range from a revision on.
func (m *model) since(key, end string, from kv.Revision) (events []kv.Event) {
	for i := len(m.all) - 1; i >= 0 && m.all[i].KV.ModRevision >= from; i-- {
		if at := string(m.all[i].KV.Key); at == key || end != "" && at >= key && at < end {
			events = append(events, m.all[i])
		}
	}
	for i, j := 0, len(events)-1; i < j; i, j = i+1, j-1 {
		events[i], events[j] = events[j], events[i]
	}
	return events
}

// Watchers that come, go, start in the past and in the future, read slowly and fall behind: each watcher gets each of its
// events once, in order, and no memory is left in use.
func TestStream_partiesAgainstModel(t *testing.T) {
	for seed := int64(1); seed <= 3; seed++ {
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewSource(seed))
		store, hub := openStore(t), NewHub(Options{StreamResponses: 2, StreamBytes: 8 << 10, HistoryBytes: 8 << 10})
		hub.Reset(store)
		m := &model{t: t, rng: rng, hub: hub, checked: map[checked]bool{}}
		for range 3 {
			m.streams = append(m.streams, hub.Open())
			m.watched = append(m.watched, map[int64]*told{})
		}
		m.create(0, partyWatchers+watchersPerHold)
		for range 200 {
			stream := rng.Intn(len(m.streams))
			switch rng.Intn(12) {
			case 0, 1:
				m.create(stream, 1+rng.Intn(20))
			case 2:
				m.create(stream, watchersPerHold+rng.Intn(watchersPerHold))
			case 3:
				m.cancel(stream, rng.Intn(1+len(m.watched[stream])/2))
			case 4, 5, 6:
				m.read(stream, 1+rng.Intn(3))
			default:
				m.write(store)
			}
		}
		for i, s := range m.streams {
			m.read(i, 1_000_000)
			for id, w := range m.watched[i] {
				if w.closed != 0 || w.last >= m.all[len(m.all)-1].KV.ModRevision {
					continue
				}
				if missing := m.since(w.key, w.end, max(w.from, w.last+1)); len(missing) > 0 {
					t.Errorf("watcher %d of %+v was not told of %d events", id, *w, len(missing))
				}
			}
			s.Close()
		}
		if stats := hub.Stats(); stats != (Stats{}) || hub.stepping.Len() != 0 || len(hub.sleepers) != 0 {
			t.Errorf("%+v, %d parties and %d sleepers are left", stats, hub.stepping.Len(), len(hub.sleepers))
		}
	}
}

// write puts up to three keys, some of them at one revision.
func (m *model) write(store *mvcc.Store) {
	w := store.Begin()
	var events []kv.Event
	for range 1 + m.rng.Intn(3) {
		w.BeginCommand()
		for i := range 1 + m.rng.Intn(2) {
			w.Put([]byte{byte('a' + 2*i + m.rng.Intn(2))}, []byte("value"), 0)
		}
		events = append(events, w.EndCommand()...)
	}
	if err := w.Commit(); err != nil {
		m.t.Fatal(err)
	}
	m.all = append(m.all, events...)
	if m.hub.Wanted() {
		m.hub.Publish(store.Revision(), events)
	} else {
		m.hub.Advance(store.Revision())
	}
}

// An event is queued once for all watchers of a stream that want it, and not once for each.
func TestHub_Publish_visitsParties(t *testing.T) {
	store, hub := openStore(t), NewHub(Options{})
	hub.Reset(store)
	const streams = 3
	var open []*Stream
	for range streams {
		s := hub.Open()
		defer s.Close()
		for range 2 * partyWatchers {
			s.Create(Request{Key: []byte("a"), End: []byte("b")})
		}
		drain(t, s)
		open = append(open, s)
	}
	put(t, store, hub, []byte("v"), "a")
	if hub.stepping.Len() != 2*streams {
		t.Errorf("%d parties, want %d", hub.stepping.Len(), 2*streams)
	}
	for i, s := range open {
		if len(s.queue) != 2 {
			t.Errorf("stream %d: an event waits %d times, want twice", i, len(s.queue))
		}
		if bytes, _ := s.size(); bytes > 4*responseBytes+2*eventOverheadBytes {
			t.Errorf("stream %d: %d bytes are counted", i, bytes)
		}
		if events, _, _ := drain(t, s); events != 2*partyWatchers {
			t.Errorf("stream %d: %d watchers were told", i, events)
		}
	}
}

// Events are read once for all watchers that resume from the same revision.
func TestStream_catchUp_onceForAParty(t *testing.T) {
	store, hub := openStore(t), NewHub(Options{HistoryBytes: 1})
	hub.Reset(store)
	for i := range 100 {
		put(t, store, hub, []byte("v"), fmt.Sprintf("a%d", i))
	}
	s := hub.Open()
	defer s.Close()
	for range 1000 {
		s.Create(Request{Key: []byte("a"), End: []byte("b"), Start: 2})
	}
	if s.behind.Len() != 1 {
		t.Errorf("%d parties are behind, want one", s.behind.Len())
	}
	batches := map[*Batch]int{}
	for {
		responses, err := s.Next(doneContext())
		if err != nil && !s.Lagging() {
			break
		}
		for i := range responses {
			if responses[i].Batch != nil {
				batches[responses[i].Batch]++
			}
		}
	}
	events := 0
	for batch, watchers := range batches {
		if watchers != 1000 {
			t.Errorf("a batch was shared by %d watchers, want all", watchers)
		}
		events += len(batch.Events)
	}
	if events != 100 {
		t.Errorf("%d events in %d batches, want 100", events, len(batches))
	}
}
