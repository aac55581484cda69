package watch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// source is a store and a hub, with the part of the state machine that uses them.
type source struct {
	t     testing.TB
	store *mvcc.Store
	hub   *watch.Hub
	all   []kv.Event
}

func newSource(t testing.TB, options watch.Options) *source {
	s := &source{t: t, hub: watch.NewHub(options)}
	s.store = newStore(t)
	s.hub.Reset(s.store)
	return s
}

func newStore(t testing.TB) *mvcc.Store {
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

// write applies a batch of commands. A command is words: "a=1" puts, "-a" deletes; words of one command share a revision.
func (s *source) write(commands ...string) {
	s.t.Helper()
	wanted := s.hub.Wanted()
	events := s.commit(commands...)
	if wanted {
		s.hub.Publish(s.store.Revision(), events)
	} else {
		s.hub.Advance(s.store.Revision())
	}
}

func (s *source) commit(commands ...string) (events []kv.Event) {
	s.t.Helper()
	w := s.store.Begin()
	for _, command := range commands {
		w.BeginCommand()
		for _, word := range strings.Fields(command) {
			if key, found := strings.CutPrefix(word, "-"); found {
				w.DeleteRange([]byte(key), nil, nil)
				continue
			}
			key, value, _ := strings.Cut(word, "=")
			w.Put([]byte(key), []byte(value), 0)
		}
		events = append(events, w.EndCommand()...)
	}
	if err := w.Commit(); err != nil {
		s.t.Fatal(err)
	}
	s.all = append(s.all, events...)
	return events
}

func (s *source) compact(rev kv.Revision) {
	s.t.Helper()
	w := s.store.Begin()
	if err := w.Compact(rev); err != nil {
		s.t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		s.t.Fatal(err)
	}
	for done := false; !done; {
		var err error
		if done, err = s.store.CompactStep(100); err != nil {
			s.t.Fatal(err)
		}
	}
}

// poll returns the responses of a stream so far, one line for each.
func poll(t testing.TB, s *watch.Stream) string {
	t.Helper()
	done, cancel := context.WithCancel(context.Background())
	cancel()
	var lines []string
	for {
		responses, err := s.Next(done)
		if errors.Is(err, context.Canceled) {
			if s.Lagging() {
				continue
			}
			return strings.Join(lines, "\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range responses {
			lines = append(lines, tell(&responses[i]))
		}
	}
}

func tell(r *watch.Response) string {
	line := fmt.Sprintf("%d@%d", r.WatchID, r.Revision)
	switch {
	case r.Err != nil:
		line += fmt.Sprintf(" refused(%v,%v): %v", r.Created, r.Canceled, r.Err)
	case r.Created:
		line += " created"
	case r.Compact != 0:
		line += fmt.Sprintf(" compacted %d", r.Compact)
	case r.Canceled:
		line += " canceled"
	case r.Batch == nil:
		line += " progress"
	default:
		for i := range r.Batch.Events {
			line += " " + tellEvent(&r.Batch.Events[i], r.Batch.PrevKV)
		}
	}
	return line
}

func tellEvent(ev *kv.Event, prev bool) string {
	word := fmt.Sprintf("%s=%s@%d", ev.KV.Key, ev.KV.Value, ev.KV.ModRevision)
	if ev.Kind == kv.EventDelete {
		word = fmt.Sprintf("-%s@%d", ev.KV.Key, ev.KV.ModRevision)
	}
	if prev && ev.Prev != nil {
		word += fmt.Sprintf("(%s@%d)", ev.Prev.Value, ev.Prev.ModRevision)
	}
	return word
}

func want(t testing.TB, what, got string, lines ...string) {
	t.Helper()
	if want := strings.Join(lines, "\n"); got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

func request(key, end string, start kv.Revision) watch.Request {
	return watch.Request{Key: []byte(key), End: []byte(end), Start: start}
}

func TestStream_Create_ids_and_refusals(t *testing.T) {
	src := newSource(t, watch.Options{})
	src.write("a=1")
	s := src.hub.Open()
	defer s.Close()
	withID := func(id int64) watch.Request {
		req := request("a", "", 0)
		req.ID = id
		return req
	}
	for _, req := range []watch.Request{
		withID(0), withID(1), withID(0), withID(1), request("b", "b", 0), request("c", "b", 0), request("a", "", -1),
		withID(-7),
	} {
		s.Create(req)
	}
	s.Reject(errors.New("no permission"))
	want(t, "answers", poll(t, s),
		"0@2 created", "1@2 created", "2@2 created",
		"-1@2 refused(true,true): watch: duplicate watch id on the stream",
		"-1@2 refused(true,true): watch: range is empty",
		"-1@2 refused(true,true): watch: range is empty",
		"-1@2 refused(true,true): kv: revision has been compacted",
		"-7@2 created",
		"-1@2 refused(true,true): no permission")
	if s.Cancel(99) || !s.Cancel(1) || s.Cancel(1) {
		t.Error("Cancel told the wrong ids")
	}
	src.write("a=2")
	want(t, "after a cancellation", sorted(poll(t, s)), "-7@3 a=2@3", "0@3 a=2@3", "1@2 canceled", "2@3 a=2@3")
}

// sorted sorts the lines of different watchers, which come in no order.
func sorted(lines string) string {
	list := strings.Split(lines, "\n")
	for i := range list {
		for j := i; j > 0 && list[j] < list[j-1]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return strings.Join(list, "\n")
}

func TestStream_Create_ranges(t *testing.T) {
	for _, c := range []struct{ name, key, end, want string }{
		{"one key", "b", "", "b=1@2"},
		{"an interval", "a", "c", "a=1@2 b=1@2"},
		{"from a key on", "b", "\x00", "b=1@2 c=1@2"},
		{"no key is the smallest", "", "b", "a=1@2"},
		{"everything", "\x00", "\x00", "a=1@2 b=1@2 c=1@2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := newSource(t, watch.Options{})
			live, late := src.hub.Open(), src.hub.Open()
			defer live.Close()
			defer late.Close()
			live.Create(request(c.key, c.end, 0))
			src.write("a=1 b=1 c=1")
			late.Create(request(c.key, c.end, 2))
			want(t, "in step", poll(t, live), "0@1 created", "0@2 "+c.want)
			want(t, "from the past", poll(t, late), "0@2 created", "0@2 "+c.want)
		})
	}
}

func TestStream_Create_start(t *testing.T) {
	for _, c := range []struct {
		name  string
		start kv.Revision
		want  []string
	}{
		{"zero is what comes", 0, []string{"0@5 created", "0@7 a=5@6 a=6@7"}},
		{"the past", 3, []string{"0@5 created", "0@5 a=2@3 a=3@5", "0@7 a=5@6 a=6@7"}},
		{"now", 5, []string{"0@5 created", "0@5 a=3@5", "0@7 a=5@6 a=6@7"}},
		{"the next", 6, []string{"0@5 created", "0@7 a=5@6 a=6@7"}},
		{"the future, in the middle of a batch", 7, []string{"0@5 created", "0@7 a=6@7"}},
		{"a future that does not come", 9, []string{"0@5 created"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := newSource(t, watch.Options{})
			src.write("a=1", "a=2", "b=1", "a=3")
			s := src.hub.Open()
			defer s.Close()
			s.Create(request("a", "", c.start))
			got := poll(t, s)
			src.write("a=5", "a=6")
			want(t, c.name, strings.TrimSuffix(got+"\n"+poll(t, s), "\n"), c.want...)
		})
	}
}

func TestStream_Create_compacted(t *testing.T) {
	src := newSource(t, watch.Options{})
	src.write("a=1", "a=2", "a=3", "a=4")
	src.compact(4)
	s := src.hub.Open()
	defer s.Close()
	s.Create(request("a", "", 3))
	s.Create(request("a", "", 4))
	want(t, "below and at the compaction", poll(t, s),
		"0@5 created", "1@5 created", "0@0 compacted 4", "1@5 a=3@4 a=4@5")
	src.write("a=5")
	want(t, "the cancelled one is gone", poll(t, s), "1@6 a=5@6")
}

func TestStream_filters_and_prev(t *testing.T) {
	src := newSource(t, watch.Options{})
	s := src.hub.Open()
	defer s.Close()
	for i, req := range []watch.Request{{PrevKV: true}, {NoPut: true}, {NoDelete: true}, {NoPut: true, NoDelete: true}} {
		req.Key, req.ID = []byte("a"), int64(i+1)
		s.Create(req)
	}
	poll(t, s)
	src.write("a=1")
	src.write("a=2")
	src.write("-a")
	src.write("a=3")
	lines := []string{"1@2 a=1@2", "1@3 a=2@3(1@2)", "1@4 -a@4(2@3)", "1@5 a=3@5", "2@4 -a@4", "3@2 a=1@2", "3@3 a=2@3",
		"3@5 a=3@5"}
	want(t, "in step", sorted(poll(t, s)), lines...)
	late := src.hub.Open()
	defer late.Close()
	late.Create(watch.Request{Key: []byte("a"), Start: 2, PrevKV: true})
	late.Create(watch.Request{Key: []byte("a"), Start: 2, NoPut: true})
	late.Create(watch.Request{Key: []byte("a"), Start: 2, NoPut: true, NoDelete: true})
	want(t, "from the past", poll(t, late), "0@5 created", "1@5 created", "2@5 created",
		"0@5 a=1@2 a=2@3(1@2) -a@4(2@3) a=3@5", "1@5 -a@4")
}

func TestStream_progress(t *testing.T) {
	src := newSource(t, watch.Options{})
	src.write("a=1")
	s := src.hub.Open()
	defer s.Close()
	s.RequestProgress()
	want(t, "without watchers", poll(t, s))
	s.Create(watch.Request{Key: []byte("a"), ProgressNotify: true})
	s.Create(watch.Request{Key: []byte("b")})
	poll(t, s)
	src.write("a=2")
	s.RequestProgress()
	want(t, "progress comes behind the events that it covers", poll(t, s), "0@3 a=2@3", "-1@3 progress")
	s.Tick()
	want(t, "there were events since the last tick", poll(t, s))
	src.write("z=1")
	s.Tick()
	want(t, "none of its own", poll(t, s), "0@4 progress")
	s.Create(request("c", "", 6))
	poll(t, s)
	s.RequestProgress()
	want(t, "one watcher starts in the future", poll(t, s))
	src.write("z=2", "z=3")
	want(t, "it starts", poll(t, s))
	s.RequestProgress()
	want(t, "it has started", poll(t, s), "-1@6 progress")
	s.Create(request("a", "", 2))
	s.RequestProgress()
	want(t, "one watcher is behind", poll(t, s), "3@6 created", "3@6 a=1@2 a=2@3")
}

func TestStream_falls_behind_and_catches_up(t *testing.T) {
	for name, options := range map[string]watch.Options{
		"from the history": {StreamResponses: 3},
		"from the store":   {StreamResponses: 3, HistoryBytes: 1},
		"by bytes":         {StreamBytes: 300, HistoryBytes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			src := newSource(t, options)
			s := src.hub.Open()
			defer s.Close()
			s.Create(request("a", "", 0))
			for i := 0; i < 20; i++ {
				src.write("a=1", "b=1")
			}
			if stats := src.hub.Stats(); stats.Behind != 1 || stats.Watchers != 1 {
				t.Fatalf("%+v, want the watcher behind", stats)
			}
			next := kv.Revision(2)
			for _, word := range strings.Fields(poll(t, s)) {
				if strings.HasPrefix(word, "a=") {
					if want := fmt.Sprintf("a=1@%d", next); word != want {
						t.Fatalf("got %s, want %s", word, want)
					}
					next += 2
				}
			}
			if next != 42 {
				t.Fatalf("the events end before %d", next)
			}
			src.write("a=2")
			want(t, "in step again", poll(t, s), "0@42 a=2@42")
		})
	}
}

func TestStream_overtaken_by_compaction(t *testing.T) {
	src := newSource(t, watch.Options{StreamResponses: 2, HistoryBytes: 1})
	s := src.hub.Open()
	defer s.Close()
	s.Create(request("a", "", 0))
	for i := 0; i < 9; i++ {
		src.write("a=1")
	}
	src.compact(8)
	want(t, "what was queued, then the end", poll(t, s),
		"0@1 created", "0@2 a=1@2", "0@3 a=1@3", "0@4 a=1@4", "0@0 compacted 8")
}

func TestHub_Advance_when_somebody_came_in_between(t *testing.T) {
	src := newSource(t, watch.Options{})
	s := src.hub.Open()
	defer s.Close()
	if src.hub.Wanted() {
		t.Fatal("wanted without watchers")
	}
	src.commit("a=1")
	s.Create(request("a", "", 0)) // after the state machine called Wanted, before it publishes
	src.hub.Advance(src.store.Revision())
	want(t, "it is told", poll(t, s), "0@1 created", "0@2 a=1@2")
}

func TestHub_Reset_goes_on(t *testing.T) {
	src := newSource(t, watch.Options{})
	s := src.hub.Open()
	defer s.Close()
	s.Create(request("a", "", 0))
	s.Create(request("a", "", 6))
	src.write("a=1")
	want(t, "before", poll(t, s), "0@1 created", "1@1 created", "0@2 a=1@2")
	src.hub.Detach()
	want(t, "detached", poll(t, s))

	ahead := &source{t: t, store: newStore(t), hub: src.hub}
	ahead.commit("a=1", "a=2", "b=1", "a=3", "a=4")
	ahead.hub.Reset(ahead.store)
	want(t, "the store of a snapshot", sorted(poll(t, s)), "0@6 a=2@3 a=3@5 a=4@6", "1@6 a=4@6")

	src.hub.Detach()
	back := &source{t: t, store: newStore(t), hub: src.hub}
	back.commit("a=1", "a=2")
	back.hub.Reset(back.store)
	back.write("b=1", "a=3", "a=4", "a=5")
	want(t, "an older store and the log again", sorted(poll(t, s)), "0@7 a=5@7", "1@7 a=5@7")

	src.hub.Detach()
	far := &source{t: t, store: newStore(t), hub: src.hub}
	far.commit("a=1", "a=2", "b=1", "a=3", "a=4", "a=5", "a=6", "a=7", "a=8")
	far.compact(9)
	far.hub.Reset(far.store)
	want(t, "a store that has forgotten", sorted(poll(t, s)), "0@0 compacted 9", "1@0 compacted 9")
}

func TestStream_Close(t *testing.T) {
	src := newSource(t, watch.Options{})
	s, other := src.hub.Open(), src.hub.Open()
	defer other.Close()
	s.Create(request("a", "", 0))
	other.Create(request("a", "", 0))
	failed := make(chan error)
	go func() {
		for {
			if _, err := s.Next(context.Background()); err != nil {
				failed <- err
				return
			}
		}
	}()
	s.Close()
	s.Close()
	if err := <-failed; !errors.Is(err, watch.ErrClosed) {
		t.Errorf("Next: %v", err)
	}
	if _, ok := s.Create(request("a", "", 0)); ok {
		t.Error("a closed stream takes a watcher")
	}
	src.write("a=1")
	want(t, "the other stream", poll(t, other), "0@1 created", "0@2 a=1@2")
	if stats := src.hub.Stats(); stats.Streams != 1 || stats.Watchers != 1 || stats.Behind != 0 {
		t.Errorf("%+v", stats)
	}
}

func TestBatch_Encoded_once_for_all(t *testing.T) {
	src := newSource(t, watch.Options{})
	calls := 0
	var streams []*watch.Stream
	for i := 0; i < 50; i++ {
		s := src.hub.Open()
		defer s.Close()
		s.Create(request("a", "b", 0))
		poll(t, s)
		streams = append(streams, s)
	}
	src.write("a=1")
	for _, s := range streams {
		responses, err := s.Next(context.Background())
		if err != nil || len(responses) != 1 {
			t.Fatal(responses, err)
		}
		responses[0].Batch.Encoded(func(b *watch.Batch) []byte { calls++; return b.Events[0].KV.Key })
	}
	if calls != 1 {
		t.Errorf("encoded %d times for 50 watchers", calls)
	}
}
