package admission_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/quorate/quorate/internal/limits/admission"
)

// Ensure that one call runs at a time, that hosts take turns, and that a host with many waits for its own.
func TestHostTurns_Enter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := admission.NewHostTurns(10, 8, 5)
		ctx, cancel := context.WithCancel(context.Background())
		first, err := turns.Enter(ctx, "many", 10)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		wait := func(ctx context.Context, host string) {
			go func() {
				leave, err := turns.Enter(ctx, host, 10)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					order = append(order, host+": "+err.Error())
					return
				}
				order = append(order, host)
				go leave()
			}()
			synctest.Wait()
		}
		for range 3 {
			wait(context.Background(), "many")
		}
		wait(ctx, "gone")
		wait(context.Background(), "few")
		wait(context.Background(), "few")
		cancel()
		synctest.Wait()
		if in, _ := turns.Counts(); in != 6 {
			t.Errorf("%d are in", in)
		}
		first()
		synctest.Wait()
		want := []string{"gone: context canceled", "many", "few", "many", "few", "many"}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(order, want) {
			t.Errorf("in the order %q, want %q", order, want)
		}
		if in, refused := turns.Counts(); in != 0 || refused != 0 {
			t.Errorf("%d are in, %d were refused", in, refused)
		}
	})
}

// Ensure that a host whose calls run for long leaves room for others, and goes on as its own end.
func TestHostTurns_Share(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := admission.NewHostTurns(4, 20, 20).Share(3)
		ended := make(chan struct{})
		var mu sync.Mutex
		runs := map[string]int{}
		enter := func(host string) {
			go func() {
				leave, err := turns.Enter(context.Background(), host, 1)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				runs[host]++
				mu.Unlock()
				<-ended
				leave()
			}()
			synctest.Wait()
		}
		check := func(many, few int) {
			t.Helper()
			synctest.Wait()
			if runs["many"] != many || runs["few"] != few {
				t.Errorf("calls that have run: %v, want %d and %d", runs, many, few)
			}
		}
		for range 8 {
			enter("many")
		}
		check(3, 0)
		enter("few")
		check(3, 1)
		ended <- struct{}{} // the first one, of many
		check(4, 1)
		for range 8 {
			ended <- struct{}{}
		}
		check(8, 1)
		if in, _ := turns.Counts(); in != 0 {
			t.Errorf("%d are in", in)
		}
	})
}

// Ensure that no more wait than may, of one host and of all.
func TestHostTurns_Enter_refuses(t *testing.T) {
	turns := admission.NewHostTurns(10, 3, 2)
	over, cancel := context.WithCancel(context.Background())
	leave, err := turns.Enter(context.Background(), "a", 10)
	if err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	for _, host := range []string{"a", "b"} {
		waiting.Go(func() {
			if _, err := turns.Enter(over, host, 10); !errors.Is(err, context.Canceled) {
				t.Errorf("%s waited until %v", host, err)
			}
		})
	}
	for in := 0; in != 3; in, _ = turns.Counts() {
	}
	for _, host := range []string{"a", "c"} {
		if _, err := turns.Enter(context.Background(), host, 10); !errors.Is(err, admission.ErrQueueFull) {
			t.Errorf("%s, beyond the bound: %v", host, err)
		}
	}
	cancel()
	waiting.Wait()
	leave()
	if leave, err = turns.Enter(context.Background(), "c", 10); err != nil {
		t.Fatal(err)
	}
	leave()
	if in, refused := turns.Counts(); in != 0 || refused != 2 {
		t.Errorf("%d are in, %d were refused", in, refused)
	}
}

// Ensure that light calls run together, and that a heavy one gets its turn all the same.
func TestHostTurns_Enter_weights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := admission.NewHostTurns(10, 20, 20)
		var mu sync.Mutex
		running, leaves := map[int]bool{}, map[int]func(){}
		enter := func(name int, weight int64) {
			go func() {
				leave, err := turns.Enter(context.Background(), "a", weight)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				running[name], leaves[name] = true, leave
			}()
			synctest.Wait()
		}
		leave := func(name int) {
			mu.Lock()
			end := leaves[name]
			delete(running, name)
			mu.Unlock()
			end()
			synctest.Wait()
		}
		expect := func(when string, want ...int) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if got := slices.Sorted(maps.Keys(running)); !slices.Equal(got, want) {
				t.Errorf("%s: %v run, want %v", when, got, want)
			}
		}
		enter(1, 4)
		enter(2, 4)
		enter(3, 30) // heavier than all may be
		enter(4, 1)  // light, and behind it
		expect("as they came", 1, 2)
		leave(1)
		expect("one is over", 2)
		leave(2)
		expect("both are over", 3)
		leave(3)
		expect("the heavy one is over", 4)
		leave(4)
		if in, _ := turns.Counts(); in != 0 {
			t.Errorf("%d are in", in)
		}
	})
}
