package firstmsg

import (
	"context"
	"testing"
	"time"
)

func TestGate_Sweep(t *testing.T) {
	g := New(Limits{Patience: 30 * time.Second, Crowd: 2, Crowded: 2 * time.Second})
	begun := time.Unix(1000, 0)
	var calls []*call
	enter := func(at time.Duration) {
		ctx, err := g.Tap(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		c := ctx.Value(callKey{}).(*call)
		g.enter(c, begun.Add(at))
		calls = append(calls, c)
	}
	expect := func(at time.Duration, ended ...bool) {
		t.Helper()
		g.Sweep(begun.Add(at))
		for i, want := range ended {
			if got := calls[i].Err() == context.DeadlineExceeded; got != want {
				t.Errorf("after %v call %d has ended: %v, want %v", at, i, got, want)
			}
		}
	}
	enter(0)
	enter(time.Second)
	expect(10*time.Second, false, false)
	// A third makes a crowd: the oldest goes, then there is none any more.
	enter(10 * time.Second)
	expect(10*time.Second, true, false, false)
	// One whose message came is not ended, however late it is.
	g.leave(calls[1])
	expect(39*time.Second, true, false, false)
	expect(40*time.Second, true, false, true)
	if waiting, ended := g.Counts(); waiting != 0 || ended != 2 {
		t.Errorf("%d wait and %d were ended, want none and 2", waiting, ended)
	}
	g.leave(calls[0]) // by its handler, after it was ended
	if waiting, _ := g.Counts(); waiting != 0 {
		t.Errorf("%d wait, want none", waiting)
	}
}

func BenchmarkGate_Receive(b *testing.B) {
	g := New(Limits{})
	b.ReportAllocs()
	for b.Loop() {
		parent, end := context.WithCancel(context.Background())
		ctx, _ := g.Tap(parent, nil)
		if err := g.Receive(ctx, func() error { return nil }); err != nil {
			b.Fatal(err)
		}
		end()
		<-ctx.Done()
	}
}

func TestGate_Receive_leavesInAnyOrder(t *testing.T) {
	g := New(Limits{})
	var calls []*call
	for range 5 {
		ctx, _ := g.Tap(context.Background(), nil)
		c := ctx.(*call)
		g.enter(c, time.Unix(1, 0))
		calls = append(calls, c)
	}
	for n, i := range []int{2, 0, 4, 1, 3} {
		g.leave(calls[i])
		if waiting, _ := g.Counts(); waiting != 4-n {
			t.Fatalf("%d wait after %d left, want %d", waiting, n+1, 4-n)
		}
	}
	if g.oldest != nil || g.newest != nil {
		t.Error("somebody is left in the line")
	}
}
