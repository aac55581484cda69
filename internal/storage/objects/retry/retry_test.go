package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
	"github.com/quorate/quorate/internal/storage/objects/retry"
)

// Ensure that pauses grow to the longest one, lie in their halves, and end.
func TestPolicy_Pause(t *testing.T) {
	p := retry.Policy{Attempts: 6, First: time.Second, Most: 5 * time.Second}
	for i, longest := range []time.Duration{1, 2, 4, 5, 5} {
		for _, random := range []float64{0, 0.5, 0.999} {
			got, again := p.Pause(i+1, random)
			if low, high := longest*time.Second/2, longest*time.Second; !again || got < low || got >= high {
				t.Errorf("after attempt %d: %v, %v, want from %v to %v", i+1, got, again, low, high)
			}
		}
	}
	for _, attempt := range []int{6, 7, 1 << 40} {
		if _, again := p.Pause(attempt, 0); again {
			t.Errorf("after attempt %d there is another", attempt)
		}
	}
	if _, again := (retry.Policy{}).Pause(1, 0); again {
		t.Error("a policy of nothing tries again")
	}
	if got, _ := (retry.Policy{Attempts: 1 << 40, First: 1, Most: 1 << 62}).Pause(1<<39, 0.999); got <= 0 {
		t.Errorf("after many attempts: %v", got)
	}
}

// clock counts pauses, and ends the context after some.
type clock struct {
	pauses []time.Duration
	most   int
	end    context.CancelFunc
}

func (c *clock) wait(ctx context.Context, d time.Duration) error {
	if c.pauses = append(c.pauses, d); len(c.pauses) == c.most {
		c.end()
	}
	return ctx.Err()
}

func half() float64 { return 0.5 }

func never() time.Time { return time.Time{} }

// Ensure that a store that tries again is one like others.
func TestStore(t *testing.T) {
	objectstest.Run(t, func(*testing.T) objects.Store {
		return retry.New(objectstest.NewPlace(1, never), retry.Policy{Attempts: 3}, (&clock{}).wait, half)
	}, objectstest.Options{Large: 1 << 20})
}

// Ensure that operations succeed at a place that fails often, with all bytes, and that no answer that was lost makes an object
// of others.
func TestStore_faults(t *testing.T) {
	for seed := range uint64(30) {
		place := objectstest.NewPlace(seed, never)
		place.SetFaults(objectstest.Faults{Busy: 0.2, Lost: 0.2, Gone: 0.1, Cut: 0.5, StaleList: 0.3, StaleRange: 4})
		c := &clock{}
		s := retry.New(place, retry.Policy{Attempts: 40, First: time.Second, Most: time.Minute}, c.wait, half)
		for i := range 20 {
			name, content := fmt.Sprintf("o/%02d", i), strings.Repeat(fmt.Sprint(i), i*100)
			if err := objects.PutOnce(t.Context(), s, name, strings.NewReader(content), int64(len(content))); err != nil {
				t.Fatalf("seed %d: put %s: %v", seed, name, err)
			}
			for _, from := range []int{0, len(content) / 3} {
				body, err := s.Get(t.Context(), name, int64(from), -1)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				got, err := io.ReadAll(body)
				if err := errors.Join(err, body.Close()); err != nil || string(got) != content[from:] {
					t.Fatalf("seed %d: %s from %d has %d bytes of %d: %v", seed, name, from, len(got), len(content)-from, err)
				}
			}
		}
		if err := s.Delete(t.Context(), "o/00"); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if n := len(place.Names()); n != 19 {
			t.Errorf("seed %d: the place has %d objects", seed, n)
		}
		counts := place.Counts()
		if counts.Busy == 0 || counts.Lost == 0 || counts.Gone == 0 || counts.Cut == 0 || len(c.pauses) == 0 {
			t.Errorf("seed %d: the place did not fail: %+v", seed, counts)
		}
	}
}

// Ensure that an error that stays ends after the attempts of the policy, and one that does not pass at once.
func TestStore_ends(t *testing.T) {
	place, c := objectstest.NewPlace(1, never), &clock{}
	s := retry.New(place, retry.Policy{Attempts: 4, First: time.Second, Most: time.Second}, c.wait, half)
	place.SetFaults(objectstest.Faults{Busy: 1})
	if _, err := s.Stat(t.Context(), "o"); !errors.Is(err, objects.ErrBusy) || len(c.pauses) != 3 || place.Counts().Busy != 4 {
		t.Errorf("%v, %v, %+v", err, c.pauses, place.Counts())
	}
	place.SetFaults(objectstest.Faults{})
	place.SetCapacity(1)
	c.pauses = nil
	if err := s.Put(t.Context(), "o", strings.NewReader("xx"), 2); !errors.Is(err, objects.ErrFull) || len(c.pauses) != 0 {
		t.Errorf("%v, %v", err, c.pauses)
	}
}

// Ensure that a body that never comes on ends, and that one that comes on in small pieces does not.
func TestStore_bodyEnds(t *testing.T) {
	place, c := objectstest.NewPlace(1, never), &clock{}
	s := retry.New(place, retry.Policy{Attempts: 3, First: time.Second, Most: time.Second}, c.wait, half)
	if err := s.Put(t.Context(), "o", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	body, err := s.Get(t.Context(), "o", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	_ = body.Close()
	place.SetFaults(objectstest.Faults{Cut: 1}) // of one byte nothing comes
	if body, err = s.Get(t.Context(), "o", 0, -1); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(body); !errors.Is(err, objects.ErrUnreachable) || len(got) > 0 || len(c.pauses) != 2 {
		t.Errorf("got %q, %v, %v", got, err, c.pauses)
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
}

// Ensure that a context ends the pauses, and that the error is the last one of the place.
func TestStore_contextEndsPauses(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	place, c := objectstest.NewPlace(1, never), &clock{most: 2, end: cancel}
	place.SetFaults(objectstest.Faults{Gone: 1})
	s := retry.New(place, retry.Policy{Attempts: 1000, First: 1, Most: 1}, c.wait, half)
	if err := s.Delete(ctx, "o"); !errors.Is(err, objects.ErrUnreachable) || len(c.pauses) != 2 {
		t.Errorf("%v, %v", err, c.pauses)
	}
}
