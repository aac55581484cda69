package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

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
		if got.Calls == 0 || got.Nice != 19 || got.Spent <= 0 {
			t.Errorf("%s: %d calls in %s, at priority %d, want some, at 19", name, got.Calls, got.Spent, got.Nice)
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

// TestHolding_converse_readsSlowly has a client take more than its first window of answers.
func TestHolding_converse_readsSlowly(t *testing.T) {
	h := slowly("ranges", kvRange, readFirst)
	h.streams = 3
	l, err := h.dial("127.0.2.1", &errand{Client: serveHeld(t, &heldServer{})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	conversed := make(chan struct{})
	go func() {
		defer close(conversed)
		h.converse(ctx, l, &counter{})
	}()
	limited, late := context.WithTimeout(t.Context(), 10*time.Second)
	defer late()
	for l.conn.Took() <= 65535 && limited.Err() == nil {
		cluster.Pause(limited, time.Millisecond)
	}
	cancel()
	<-conversed
	if took := l.conn.Took(); took <= 65535 {
		t.Errorf("took %d bytes, no more than a client that does not read", took)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestFilling_fillStore_rounds wants every key put in each round.
func TestFilling_fillStore_rounds(t *testing.T) {
	s := &heldServer{hung: map[int64]int{}}
	f := filling{keys: 130, rounds: 3}
	takeSteps(t, s, func(ctx context.Context, conn *grpc.ClientConn, _ int64) error {
		return f.fillStore(ctx, pb.NewKVClient(conn), nil)
	})
	if want := 3 * f.keys * f.rounds; s.hung[0] != want {
		t.Errorf("%d puts, want %d", s.hung[0], want)
	}
}
