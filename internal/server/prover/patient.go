package prover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
)

const (
	// mostHung is how many reads of a place that were given up may be under way when another proof begins: each may hold a page
	// of a list.
	mostHung = 2
	// leaveLooks is after how many looks a read is given up that has no end though another member proves the backup, and
	// quitLooks though this one ends.
	leaveLooks, quitLooks = 30, 5
	readBytes             = 128 << 10
)

var errOver = errors.New("another member proves the backup")

// errHangs means that a read of the place was given up.
var errHangs = fmt.Errorf("%w, or this one ends, and the place does not answer", errOver)

// patient reads a place that may hang, as a file system of the network does: a read there ends neither when it is cancelled nor
// otherwise. Once the proof is over it is waited for a while, and given up.
type patient struct {
	objects.Store
	life   context.Context // of this member
	over   func() bool     // another member proves
	cancel context.CancelFunc
	every  time.Duration // between two looks
	hung   *atomic.Int64 // reads that were given up and have not ended
}

// await returns what f returns, or errHangs if it does not in time. drop gets what came later, which nobody else has.
func await[T any](ctx context.Context, s *patient, f func() (T, error), drop func(T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	answers, gone := make(chan answer), make(chan struct{})
	go func() {
		v, err := f()
		select {
		case answers <- answer{v, err}:
		case <-gone:
			drop(v, err)
			s.hung.Add(-1)
		}
	}()
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for waited := 0; ; {
		select {
		case a := <-answers:
			return a.v, a.err
		case <-ticker.C:
		}
		most := leaveLooks
		switch {
		case s.life.Err() != nil:
			most = quitLooks
		case ctx.Err() == nil && s.over():
			s.cancel()
		case ctx.Err() == nil:
			continue
		}
		if waited++; waited >= most {
			s.hung.Add(1)
			close(gone)
			return *new(T), errHangs
		}
	}
}

// page is what List returns.
type page struct {
	found []objects.Info
	more  bool
}

// List implements objects.Store.
func (s *patient) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, bool, error) {
	p, err := await(ctx, s, func() (p page, err error) {
		p.found, p.more, err = s.Store.List(ctx, prefix, after, limit)
		return p, err
	}, func(page, error) {})
	return p.found, p.more, err
}

// Stat implements objects.Store.
func (s *patient) Stat(ctx context.Context, name string) (objects.Info, error) {
	return await(ctx, s, func() (objects.Info, error) { return s.Store.Stat(ctx, name) }, func(objects.Info, error) {})
}

// Get implements objects.Store.
func (s *patient) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	from, err := await(ctx, s, func() (io.ReadCloser, error) { return s.Store.Get(ctx, name, offset, length) },
		func(from io.ReadCloser, err error) {
			if err == nil {
				_ = from.Close() // nobody has read it
			}
		})
	if err != nil {
		return nil, err
	}
	return &body{s: s, ctx: ctx, from: from}, nil
}

// body is an object that is read by its own buffer: a read that was given up has that of nobody else.
type body struct {
	s      *patient
	ctx    context.Context
	from   io.ReadCloser
	buffer []byte
	hangs  bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.hangs {
		return 0, errHangs
	}
	size := min(len(p), readBytes)
	if len(b.buffer) < size {
		b.buffer = make([]byte, size)
	}
	buffer, from := b.buffer[:size], b.from
	n, err := await(b.ctx, b.s, func() (int, error) { return from.Read(buffer) }, func(int, error) { _ = from.Close() })
	if b.hangs = errors.Is(err, errHangs); b.hangs {
		return 0, err
	}
	return copy(p, buffer[:n]), err
}

// Close implements io.Closer. A body that hangs is closed once it does not any more.
func (b *body) Close() error {
	if b.hangs {
		return nil
	}
	_, err := await(b.ctx, b.s, func() (struct{}, error) { return struct{}{}, b.from.Close() }, func(struct{}, error) {})
	return err
}
