package progress_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/progress"
)

// Ensure that a probing leader sends one append, and streams after the first acknowledgement until the window is full.
func TestPeer_pace(t *testing.T) {
	p := progress.New(2, 10, 2, 100)
	p.SentEntries(12, 10, 0)
	if !p.Paused() || p.Next != 10 {
		t.Fatalf("probe: paused %v, next %d", p.Paused(), p.Next)
	}
	p.Acknowledged(12, 0)
	p.BecomeReplicate()
	p.SentEntries(20, 10, 0)
	if p.Paused() || p.Next != 21 {
		t.Fatalf("replicate: paused %v, next %d", p.Paused(), p.Next)
	}
	p.SentEntries(30, 10, 0)
	if !p.Paused() {
		t.Fatal("two messages of two are on their way, and still not paused")
	}
	p.Acknowledged(25, 0)
	if p.Paused() || p.Inflights.Count() != 1 {
		t.Fatalf("one acknowledged: paused %v, %d on their way", p.Paused(), p.Inflights.Count())
	}
	p.SentEntries(40, 95, 0)
	if !p.Paused() {
		t.Fatal("105 bytes of 100 are on their way, and still not paused")
	}
}

func TestPeer_Refused(t *testing.T) {
	for _, tc := range []struct {
		name              string
		state             progress.State
		match, next       consensus.Index
		prev, guess, want consensus.Index
		round             uint64
		news              bool
	}{
		{"a probe steps back to the guess", progress.Probe, 0, 10, 9, 4, 5, 3, true},
		{"a probe steps back by one at least", progress.Probe, 0, 10, 9, 20, 9, 3, true},
		{"never below what is known to match", progress.Probe, 6, 10, 9, 2, 7, 4, true},
		{"an old refusal of another probe", progress.Probe, 0, 10, 7, 2, 10, 3, false},
		{"a refusal of what was sent before the probe", progress.Probe, 0, 10, 9, 4, 10, 2, false},
		{"a stream is under way", progress.Replicate, 5, 20, 12, 7, 20, 3, false},
		{"a snapshot is under way", progress.Snapshot, 5, 20, 12, 7, 20, 3, false},
	} {
		p := progress.New(2, tc.next, 8, 1000)
		p.State, p.Match, p.Since = tc.state, tc.match, 3
		if got := p.Refused(tc.prev, tc.guess, tc.round); got != tc.news || p.Next != tc.want {
			t.Errorf("%s: got %v, next %d; want %v, next %d", tc.name, got, p.Next, tc.news, tc.want)
		}
	}
}

func TestPeer_Lacks(t *testing.T) {
	for _, tc := range []struct {
		name  string
		state progress.State
		prev  consensus.Index
		round uint64
		want  bool
	}{
		{"a gap in the stream", progress.Replicate, 12, 3, true},
		{"a refusal of what was sent before the stream began", progress.Replicate, 12, 2, false},
		{"an old refusal of what matches by now", progress.Replicate, 4, 3, false},
		{"a refusal of what was not sent", progress.Replicate, 20, 3, false},
		{"a probe", progress.Probe, 12, 3, false},
		{"a snapshot is under way", progress.Snapshot, 12, 3, false},
	} {
		p := progress.New(2, 20, 8, 1000)
		p.State, p.Match, p.Since = tc.state, 5, 3
		if got := p.Lacks(tc.prev, tc.round); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

// Ensure that the window counts right whatever is added and freed.
func TestWindow_random(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := progress.New(2, 1, 50, 1000)
	p.BecomeReplicate()
	type sent struct {
		last  consensus.Index
		bytes int
	}
	var model []sent
	last := consensus.Index(0)
	for range 20000 {
		if rng.IntN(2) == 0 && !p.Paused() {
			last += consensus.Index(1 + rng.IntN(5))
			s := sent{last, rng.IntN(100)}
			model = append(model, s)
			p.SentEntries(s.last, s.bytes, 0)
		} else if len(model) > 0 {
			upto := model[rng.IntN(len(model))].last
			p.Acknowledged(upto, 0)
			for len(model) > 0 && model[0].last <= upto {
				model = model[1:]
			}
		}
		bytes := 0
		for _, s := range model {
			bytes += s.bytes
		}
		full := len(model) >= 50 || bytes >= 1000 && len(model) > 0
		if p.Inflights.Count() != len(model) || p.Paused() != full || p.Match >= p.Next {
			t.Fatalf("%d on their way, want %d; paused %v, want %v", p.Inflights.Count(), len(model), p.Paused(), full)
		}
	}
}

func ExamplePeer() {
	p := progress.New(2, 8, 16, 1<<20)
	show := func(what string) { fmt.Printf("%-28s %v match=%d next=%d\n", what, p.State, p.Match, p.Next) }
	show("a new leader guesses")
	p.SentEntries(7, 0, 0)
	p.Refused(7, 3, 1)
	show("refused, hint 3")
	p.SentEntries(3, 0, 0)
	p.Acknowledged(3, 1)
	p.BecomeReplicate()
	show("accepted")
	p.SentEntries(12, 100, 0)
	p.SentEntries(15, 100, 0)
	show("two appends on their way")
	if p.Lacks(12, 1) {
		p.BecomeProbe(2)
	}
	show("the first one was lost")
	// Output:
	// a new leader guesses         probe match=0 next=8
	// refused, hint 3              probe match=0 next=4
	// accepted                     replicate match=3 next=4
	// two appends on their way     replicate match=3 next=16
	// the first one was lost       probe match=3 next=4
}

// Ensure that a member has lost what it had acknowledged only if it says so in a later round: an answer of the same round may have
// been sent before.
func TestPeer_Lost(t *testing.T) {
	p := progress.New(2, 1, 8, 1<<20)
	p.Acknowledged(5, 3)
	for _, row := range []struct {
		durable consensus.Index
		round   uint64
		lost    bool
	}{{4, 2, false}, {4, 3, false}, {4, 4, true}, {5, 4, false}} {
		if got := p.Lost(row.durable, row.round); got != row.lost {
			t.Errorf("%d on its disk, heard round %d: lost %t", row.durable, row.round, got)
		}
	}
}
