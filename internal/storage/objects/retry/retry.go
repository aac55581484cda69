package retry

import (
	"context"
	"io"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
)

// Store does the operations of another store again, as its policy says.
type Store struct {
	within objects.Store
	policy Policy
	wait   Wait
	random func() float64
}

// Wait waits, and returns the context's error if that ends first.
type Wait func(ctx context.Context, d time.Duration) error

// New returns a store that tries again, with numbers from [0, 1).
func New(within objects.Store, policy Policy, wait Wait, random func() float64) *Store {
	return &Store{within: within, policy: policy, wait: wait, random: random}
}

// ByClock returns New with the machine's clock and chance.
func ByClock(within objects.Store, policy Policy) *Store {
	return New(within, policy, wait, rand.Float64)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// again waits before the next attempt, and reports whether there is one.
func (s *Store) again(ctx context.Context, attempt int, err error) bool {
	if err == nil || ctx.Err() != nil || !objects.Passing(err) {
		return false
	}
	pause, again := s.policy.Pause(attempt, s.random())
	return again && s.wait(ctx, pause) == nil
}

func (s *Store) do(ctx context.Context, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if !s.again(ctx, attempt, err) {
			return err
		}
	}
}

// Put implements objects.Store. An attempt whose answer was lost may have stored the object: the next one returns ErrExists
// then.
func (s *Store) Put(ctx context.Context, name string, body io.ReadSeeker, size int64) error {
	return s.do(ctx, func() error { return s.within.Put(ctx, name, body, size) })
}

// Stat implements objects.Store.
func (s *Store) Stat(ctx context.Context, name string) (info objects.Info, err error) {
	err = s.do(ctx, func() error {
		info, err = s.within.Stat(ctx, name)
		return err
	})
	return info, err
}

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (found []objects.Info, more bool, err error) {
	err = s.do(ctx, func() error {
		found, more, err = s.within.List(ctx, prefix, after, limit)
		return err
	})
	return found, more, err
}

// Delete implements objects.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.do(ctx, func() error { return s.within.Delete(ctx, name) })
}

// Get implements objects.Store.
func (s *Store) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	b := &body{s: s, ctx: ctx, name: name, at: offset, left: length}
	if err := s.do(ctx, b.open); err != nil {
		return nil, err
	}
	return b, nil
}

// body reads an object, and opens it again where it broke off.
type body struct {
	s        *Store
	ctx      context.Context
	name     string
	at, left int64 // left is negative if the range goes to the end
	from     io.ReadCloser
	failed   int // attempts since the last byte
}

func (b *body) open() (err error) {
	b.from, err = b.s.within.Get(b.ctx, b.name, b.at, b.left)
	return err
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	for {
		var n int
		var err error
		if b.from == nil {
			err = b.open()
		} else {
			n, err = b.from.Read(p)
		}
		b.at += int64(n)
		if b.left > 0 {
			b.left = max(0, b.left-int64(n))
		}
		if n > 0 {
			b.failed = 0
		}
		if !objects.Passing(err) {
			return n, err
		}
		if b.from != nil {
			_ = b.from.Close() // it has failed already
			b.from = nil
		}
		if n > 0 {
			return n, nil
		}
		b.failed++
		if !b.s.again(b.ctx, b.failed, err) {
			return 0, err
		}
	}
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.from == nil {
		return nil
	}
	return b.from.Close()
}
