package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/bench/cluster"
)

// TestMain lets the program of the tests be an attacker, as the bench's own is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == attackerCommand {
		if err := attackHere(context.Background(), nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestAttacker(t *testing.T) {
	for _, name := range []string{"deaf ranges", "work: puts that keep large values"} { // frame by frame, and by a client
		s := &heldServer{attacked: make(chan struct{}, 1)}
		m := &cluster.Member{ClientAddr: serveHeld(t, s)}
		a, err := startAttacker(&holding{name: name}, m, "")
		if err != nil {
			t.Fatal(err)
		}
		<-s.attacked
		got, err := a.end()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Calls == 0 || got.Nice != 19 {
			t.Errorf("%s: %d calls, at priority %d, want some, at 19", name, got.Calls, got.Nice)
		}
		if !a.process.ProcessState.Exited() {
			t.Errorf("%s: it did not end by itself: %s", name, a.process.ProcessState)
		}
	}
}

func TestAttacker_unknown(t *testing.T) {
	a, err := startAttacker(&holding{name: "nobody's"}, &cluster.Member{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.end(); err == nil {
		t.Error("an attacker that knows no such attack ends well")
	}
}

func TestErrand_drawn(t *testing.T) {
	want := draw(12)
	got, err := (&errand{Name: want.name, Drawn: want.drawn, Seed: want.seed}).holding()
	if err != nil {
		t.Fatal(err)
	}
	if got.name != want.name || !strings.HasPrefix(got.name, "seed 12:") {
		t.Errorf("the attacker draws %s, and hold %s", got.name, want.name)
	}
}

// TestHolding_begin_returns has a client whose connection is dropped come back, and one that drops it.
func TestHolding_begin_returns(t *testing.T) {
	s := &heldServer{attacked: make(chan struct{}, 1)}
	h := holding{path: kvRange, message: rangeOf, ends: true, window: 65535, hosts: 1, conns: 1, streams: 1, drops: 1}
	end := h.begin(t.Context(), &errand{Client: serveHeld(t, s)})
	for range 5 {
		<-s.attacked
	}
	if got := end(); got.Calls < 5 {
		t.Errorf("%d calls, and at least 5 came", got.Calls)
	}
}
