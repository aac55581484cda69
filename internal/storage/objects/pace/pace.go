// Package pace bounds what operations on objects take of a process: bytes of bodies in a second, and operations at once.
package pace

import (
	"context"
	"io"
	"sync"

	"golang.org/x/time/rate"

	"github.com/quorate/quorate/internal/storage/objects"
)

// burst is the most bytes that pass at once, and the most of one read.
const burst = 64 << 10

// Limits are bounds; 0 is none.
type Limits struct {
	BytesPerSecond int64 // of bodies, written and read together
	AtOnce         int   // operations; a Get lasts until its body is closed
	Lists          int   // of these that are lists
}

// Store keeps the operations of another store within limits.
type Store struct {
	within objects.Store
	bytes  *rate.Limiter
	turns  turns
	lists  turns
}

// turns has an element for each operation under way; nil: there is no bound.
type turns chan struct{}

// New returns a store within limits.
func New(within objects.Store, limits Limits) *Store {
	s := &Store{within: within}
	if limits.BytesPerSecond > 0 {
		s.bytes = rate.NewLimiter(rate.Limit(limits.BytesPerSecond), burst)
	}
	if limits.AtOnce > 0 {
		s.turns = make(turns, limits.AtOnce)
	}
	if limits.Lists > 0 {
		s.lists = make(turns, limits.Lists)
	}
	return s
}

// Under returns how many operations are under way, of a store with a bound of these, and how many of them are lists, of one
// with a bound of lists.
func (s *Store) Under() (all, lists int) {
	all = len(s.turns)
	return all, min(len(s.lists), all) // a list may wait for a turn
}

// take waits for a turn.
func (t turns) take(ctx context.Context) error {
	if t == nil {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case t <- struct{}{}:
		return nil
	}
}

func (t turns) give() {
	if t != nil {
		<-t
	}
}

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, name string, body io.ReadSeeker, size int64) error {
	if err := s.turns.take(ctx); err != nil {
		return err
	}
	defer s.turns.give()
	if s.bytes != nil {
		body = &seeker{reader{ctx, s.bytes, body}, body}
	}
	return s.within.Put(ctx, name, body, size)
}

// Get implements objects.Store.
func (s *Store) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := s.turns.take(ctx); err != nil {
		return nil, err
	}
	body, err := s.within.Get(ctx, name, offset, length)
	if err != nil {
		s.turns.give()
		return nil, err
	}
	c := &closer{Reader: body, body: body, give: s.turns.give}
	if s.bytes != nil {
		c.Reader = &reader{ctx, s.bytes, body}
	}
	return c, nil
}

// Stat implements objects.Store.
func (s *Store) Stat(ctx context.Context, name string) (objects.Info, error) {
	if err := s.turns.take(ctx); err != nil {
		return objects.Info{}, err
	}
	defer s.turns.give()
	return s.within.Stat(ctx, name)
}

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	if err := s.lists.take(ctx); err != nil { // first: a list that waits for another one holds up nothing else
		return nil, false, err
	}
	defer s.lists.give()
	if err := s.turns.take(ctx); err != nil {
		return nil, false, err
	}
	defer s.turns.give()
	return s.within.List(ctx, prefix, after, limit)
}

// Delete implements objects.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := s.turns.take(ctx); err != nil {
		return err
	}
	defer s.turns.give()
	return s.within.Delete(ctx, name)
}

// reader lets bytes pass as fast as a limiter does.
type reader struct {
	ctx   context.Context
	bytes *rate.Limiter
	from  io.Reader
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p[:min(len(p), burst)])
	if waitErr := r.bytes.WaitN(r.ctx, n); waitErr != nil && err == nil {
		err = waitErr
	}
	return n, err
}

// seeker is a reader that begins anew.
type seeker struct {
	reader
	io.Seeker
}

// ReadAhead implements objects.Patient.
func (s *seeker) ReadAhead(p []byte) (int, error) { return s.from.Read(p) }

// closer gives a turn back once.
type closer struct {
	io.Reader
	body io.Closer
	once sync.Once
	give func()
}

// Close implements io.Closer.
func (c *closer) Close() error {
	defer c.once.Do(c.give)
	return c.body.Close()
}
