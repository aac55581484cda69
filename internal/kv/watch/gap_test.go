package watch_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
)

// writeAt puts a key at given revisions, in one batch.
func (s *source) writeAt(value string, revs ...kv.Revision) {
	s.t.Helper()
	wanted := s.hub.Wanted()
	w := s.store.Begin()
	var events []kv.Event
	for _, rev := range revs {
		w.BeginCommandAt(rev)
		w.Put([]byte("a"), []byte(value), 0)
		events = append(events, w.EndCommand()...)
	}
	if err := w.Commit(); err != nil {
		s.t.Fatal(err)
	}
	if wanted {
		s.hub.Publish(s.store.Revision(), events)
	} else {
		s.hub.Advance(s.store.Revision())
	}
}

// A watch may start at a revision that no command took, and gets the later events, wherever it reads them from.
func TestStream_Create_in_a_gap(t *testing.T) {
	for name, options := range map[string]watch.Options{
		"history": {}, "store": {HistoryBytes: 1},
	} {
		for _, c := range []struct {
			start kv.Revision
			want  []string
		}{
			{2, []string{"0@30 a=1@10(0@2) a=2@20(1@10) a=2@30(2@20)"}},
			{5, []string{"0@30 a=1@10(0@2) a=2@20(1@10) a=2@30(2@20)"}},
			{10, []string{"0@30 a=1@10(0@2) a=2@20(1@10) a=2@30(2@20)"}},
			{11, []string{"0@30 a=2@20(1@10) a=2@30(2@20)"}},
			{25, []string{"0@30 a=2@30(2@20)"}},
			{31, nil},
			{35, nil},
			{45, nil},
		} {
			t.Run(fmt.Sprintf("%s, from %d", name, c.start), func(t *testing.T) {
				src := newSource(t, options)
				src.writeAt("0", 2)
				keep := src.hub.Open() // so that the hub keeps a history
				defer keep.Close()
				keep.Create(request("a", "", 0))
				src.writeAt("1", 10)
				src.writeAt("2", 20, 30)
				want(t, "in step", poll(t, keep), "0@2 created", "0@10 a=1@10", "0@30 a=2@20 a=2@30")

				s := src.hub.Open()
				defer s.Close()
				req := request("a", "", c.start)
				req.PrevKV = true
				s.Create(req)
				lines := append([]string{"0@30 created"}, c.want...)
				if c.start == 2 {
					lines[1] = "0@30 a=0@2 a=1@10(0@2) a=2@20(1@10) a=2@30(2@20)"
				}
				want(t, "at once", poll(t, s), lines...)
				src.writeAt("3", 40, 50)
				next := "0@50 a=3@40(2@30) a=3@50(3@40)"
				if c.start > 40 {
					next = "0@50 a=3@50(3@40)"
				}
				want(t, "then", poll(t, s), next)
			})
		}
	}
}

// A compaction to a revision that no command took ends the watches below it and no others.
func TestStream_compaction_in_a_gap(t *testing.T) {
	src := newSource(t, watch.Options{})
	for _, rev := range []kv.Revision{2, 10, 20, 30} {
		src.writeAt("v", rev)
	}
	src.compact(15)
	s := src.hub.Open()
	defer s.Close()
	for _, start := range []kv.Revision{9, 14, 15, 17, 20} {
		s.Create(watch.Request{Key: []byte("a"), Start: start, PrevKV: true})
	}
	want(t, "watches around the compaction", poll(t, s),
		"0@30 created", "1@30 created", "2@30 created", "3@30 created", "4@30 created",
		"0@0 compacted 15", "1@0 compacted 15",
		"2@30 a=v@20(v@10) a=v@30(v@20)", "3@30 a=v@20(v@10) a=v@30(v@20)", "4@30 a=v@20(v@10) a=v@30(v@20)")
}

// A watcher that falls behind over gaps misses nothing and sees nothing twice.
func TestStream_falls_behind_over_gaps(t *testing.T) {
	for name, options := range map[string]watch.Options{
		"history": {StreamResponses: 2}, "store": {StreamResponses: 2, HistoryBytes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			src := newSource(t, options)
			s := src.hub.Open()
			defer s.Close()
			s.Create(request("a", "", 0))
			for _, rev := range []kv.Revision{7, 8, 40, 100, 101} {
				src.writeAt("v", rev)
			}
			if stats := src.hub.Stats(); stats.Behind != 1 {
				t.Fatalf("%+v, want the watcher behind", stats)
			}
			got := poll(t, s)
			src.writeAt("w", 1000)
			want(t, "all", got+"\n"+poll(t, s),
				"0@1 created", "0@7 a=v@7", "0@8 a=v@8", "0@40 a=v@40", "0@101 a=v@100 a=v@101", "0@1000 a=w@1000")
		})
	}
}

// Ensure that a watch which begins at the compaction gets no previous pair with the event of that very revision, whether the event is
// read from the store or was kept for a watch that was there before: that pair is compacted.
func TestStream_compaction_previous(t *testing.T) {
	for _, kept := range []bool{false, true} {
		src := newSource(t, watch.Options{})
		if kept {
			before := src.hub.Open()
			defer before.Close()
			before.Create(watch.Request{Key: []byte("a"), PrevKV: true})
			poll(t, before)
		}
		src.write("a=1")
		src.write("a=2")
		src.write("a=3")
		src.compact(3)
		s := src.hub.Open()
		defer s.Close()
		s.Create(watch.Request{Key: []byte("a"), Start: 3, PrevKV: true})
		s.Create(watch.Request{Key: []byte("a"), Start: 4, PrevKV: true})
		want(t, fmt.Sprintf("kept: %v", kept), sorted(poll(t, s)),
			"0@4 a=2@3 a=3@4(2@3)", "0@4 created", "1@4 a=3@4(2@3)", "1@4 created")
	}
}
