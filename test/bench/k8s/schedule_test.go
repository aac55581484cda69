package k8s

import (
	"testing"
	"time"
)

// A pod lives through its steps in their order, once each, and there are always as many pods.
func TestSchedule_pods(t *testing.T) {
	s := schedule{nodes: 100, pods: 200}
	next := map[int]int{}
	for number := range s.pods {
		next[number] = terminating // those there at the beginning run already
	}
	alive := s.pods
	for i := range 1000 * perCycle {
		m := s.at(i, 3)
		if m.class != Pod {
			continue
		}
		want, known := next[m.object], m.step == created || m.object >= s.pods
		if m.object < s.pods && m.step < terminating {
			continue // a pod of the beginning is updated once more
		}
		if m.object < 4 && m.step == deleted { // deleted before it could be told so
			want = deleted
		}
		if m.step != want {
			t.Fatalf("mutation %d: pod %d (known %v): got step %d, want %d", i, m.object, known, m.step, want)
		}
		next[m.object] = m.step + 1
		switch m.step {
		case created:
			alive++
		case deleted:
			alive--
		}
		if alive < s.pods || alive > s.pods+1 {
			t.Fatalf("mutation %d: %d pods, want %d", i, alive, s.pods)
		}
	}
}

// Every node renews once in each round over the nodes; events have numbers of their own; shares are as said.
func TestSchedule_shares(t *testing.T) {
	for _, nodes := range []int{1, 7, 100, 7919} {
		s := schedule{nodes: nodes, pods: 2 * nodes}
		count := map[Class]int{}
		renewed, events := map[int]int{}, map[int]bool{}
		const cycles = 7919 // as many renewals for each of those numbers of nodes, but for 7 and 100
		for i := range cycles * perCycle {
			m := s.at(i, 1)
			count[m.class]++
			switch m.class {
			case Lease:
				renewed[m.object]++
			case Event:
				if events[m.object] {
					t.Fatalf("event %d comes twice", m.object)
				}
				events[m.object] = true
			}
		}
		if count[Lease] != 10*cycles || count[Pod] != 6*cycles || count[Event] != 6*cycles {
			t.Errorf("%d nodes: got %v", nodes, count)
		}
		for node := range nodes {
			if got, want := renewed[node], 10*cycles/nodes; got < want || got > want+1 {
				t.Errorf("%d nodes: node %d renewed %d times, want %d", nodes, node, got, want)
			}
		}
	}
}

func TestNaturalRate(t *testing.T) {
	if got := NaturalRate(2000); got < 439.9 || got > 440.1 { // 200 renewals, 120 changes of pods, 120 events
		t.Errorf("2,000 nodes: got %v a second, want 440", got)
	}
	if got := due(1320, 440); got != 3*time.Second {
		t.Errorf("got %v, want 3s", got)
	}
}
