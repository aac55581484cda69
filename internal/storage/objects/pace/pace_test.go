package pace_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
	"github.com/quorate/quorate/internal/storage/objects/pace"
)

// Ensure that a store within limits is one like others.
func TestStore(t *testing.T) {
	objectstest.Run(t, func(*testing.T) objects.Store {
		return pace.New(objectstest.NewPlace(1, time.Now), pace.Limits{BytesPerSecond: 1 << 30, AtOnce: 1})
	}, objectstest.Options{Large: 1 << 20})
}

// Ensure that bodies pass as fast as the limit says, both ways.
func TestStore_bytesPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, perSecond = 1 << 20, 128 << 10
		s := pace.New(objectstest.NewPlace(1, time.Now), pace.Limits{BytesPerSecond: perSecond})
		begin := time.Now()
		if err := s.Put(t.Context(), "o", strings.NewReader(strings.Repeat("x", size)), size); err != nil {
			t.Fatal(err)
		}
		// The first burst, half a second's, passes at once.
		if took := time.Since(begin); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("a Put took %v", took)
		}
		begin = time.Now()
		body, err := s.Get(t.Context(), "o", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, body)
		if err := errors.Join(err, body.Close()); err != nil || n != size {
			t.Errorf("%d bytes, %v", n, err)
		}
		if took := time.Since(begin); took < 7*time.Second || took > 8500*time.Millisecond {
			t.Errorf("a Get took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Put(ctx, "n", strings.NewReader(strings.Repeat("x", size)), size); err == nil {
			t.Error("a Put outlived its context")
		}
	})
}

// Ensure that only so many operations run at once, that a body holds its turn until it is closed, once, and that who waits can
// give up.
func TestStore_atOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := pace.New(objectstest.NewPlace(1, time.Now), pace.Limits{AtOnce: 2})
		if err := s.Put(t.Context(), "o", strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
		var bodies []io.ReadCloser
		for range 2 {
			body, err := s.Get(t.Context(), "o", 0, -1)
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, body)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Stat(ctx, "o"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third operation: %v", err)
		}
		done := false
		go func() {
			_, _, err := s.List(t.Context(), "", "", 1)
			done = err == nil
		}()
		synctest.Wait()
		if done {
			t.Error("a third operation did not wait")
		}
		for range 2 { // a second Close must not give another turn
			if err := bodies[0].Close(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if !done {
			t.Error("the third operation did not get the turn that was given back")
		}
		if _, err := s.Get(t.Context(), "absent", 0, -1); !errors.Is(err, objects.ErrNotFound) {
			t.Error(err)
		}
		third, err := s.Get(t.Context(), "o", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		again, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Stat(again, "o"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second Close gave another turn: %v", err)
		}
		if err := third.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Delete(t.Context(), "o"); err != nil { // the turn of the Get that failed is free again
			t.Error(err)
		}
	})
}

// Ensure that lists have a bound of their own, and that one that waits holds up no other operation.
func TestStore_lists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goes := make(chan struct{})
		s := pace.New(slowLists{objectstest.NewPlace(1, time.Now), goes}, pace.Limits{AtOnce: 2, Lists: 1})
		for range 3 {
			go func() {
				if _, _, err := s.List(context.Background(), "", "", 1); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if under, lists := s.Under(); under != 1 || lists != 1 {
			t.Errorf("%d operations are under way, %d of them lists", under, lists)
		}
		if err := s.Put(t.Context(), "o", strings.NewReader("x"), 1); err != nil {
			t.Error(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := s.List(gone, "", "", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("nobody waits: %v", err)
		}
		close(goes)
		synctest.Wait()
		if under, _ := s.Under(); under != 0 {
			t.Errorf("%d operations are under way at the end", under)
		}
	})
}

// slowLists is a place whose lists wait.
type slowLists struct {
	objects.Store
	goes chan struct{}
}

func (s slowLists) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	<-s.goes
	return s.Store.List(ctx, prefix, after, limit)
}
