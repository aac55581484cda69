package watch

import (
	"fmt"
	"testing"
)

// Ensure that a sample of all has each watcher once, by client and user, wherever it is: in step, behind or in the future.
func TestHub_Sample_all(t *testing.T) {
	store, hub := openStore(t), NewHub(Options{})
	hub.Reset(store)
	put(t, store, hub, []byte("v"), "a", "b", "c")
	want := map[Sampled]int{}
	for stream := range 3 {
		client := []string{"", "10.0.0.1", "10.0.0.2"}[stream]
		s := hub.OpenFor(client)
		defer s.Close()
		user := ""
		if stream == 2 {
			user = "alice"
			s.SetUser(user)
		}
		for i := range 40 {
			key := fmt.Sprintf("k%d", i%10)
			request := Request{Key: []byte(key)}
			switch i % 4 {
			case 1:
				request.Start = 1 // behind
			case 2:
				request.Start = 1000
			case 3:
				request.End = []byte("z")
			}
			s.Create(request)
			want[Sampled{Client: client, User: user, Key: key}]++
		}
	}
	got := map[Sampled]int{}
	if each := hub.Sample(1000, func(w Sampled) { got[w]++ }); each != 1 {
		t.Errorf("each stands for %d", each)
	}
	for w, n := range want {
		if got[w] != n {
			t.Errorf("%+v: visited %d times, want %d", w, got[w], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("visited %v", got)
	}
}

// Ensure that a sample visits no more than it may of many watchers, stands for all of them, and holds the hub for short.
func TestHub_Sample_bounded(t *testing.T) {
	const streams, each, most = 700, 7, 100
	store, hub := openStore(t), NewHub(Options{})
	hub.Reset(store)
	for i := range streams {
		s := hub.OpenFor("c")
		defer s.Close()
		for k := range each {
			s.Create(Request{Key: fmt.Appendf(nil, "k%d", (i+k)%2)})
		}
	}
	hub.longest = 0
	for range 20 {
		visited := map[string]int{}
		stride := hub.Sample(most, func(w Sampled) { visited[w.Key]++ })
		n := visited["k0"] + visited["k1"]
		if n > most || n*stride < streams*each-stride || n*stride > streams*each+stride {
			t.Errorf("visited %d, each stands for %d, of %d", n, stride, streams*each)
		}
	}
	if hub.longest == 0 || hub.longest > watchersPerHold+visitCost {
		t.Errorf("the hub was held for %d", hub.longest)
	}
}
