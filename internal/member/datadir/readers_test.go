package datadir_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/wal"
)

// readEngine is an engine whose next iterator waits, open, and which knows how many are open when it is closed.
type readEngine struct {
	engine.Engine
	armed   atomic.Bool
	open    atomic.Int64
	reading chan struct{} // closed once the iterator is there
	goOn    chan struct{}
	closed  chan int64 // gets how many are open
}

type readIterator struct {
	engine.Iterator
	open *atomic.Int64
}

func (e *readEngine) NewIter(lower, upper []byte) (engine.Iterator, error) {
	it, err := e.Engine.NewIter(lower, upper)
	if err != nil {
		return nil, err
	}
	e.open.Add(1)
	if e.armed.Swap(false) {
		close(e.reading)
		<-e.goOn
	}
	return readIterator{it, &e.open}, nil
}

func (it readIterator) Close() error {
	it.open.Add(-1)
	return it.Iterator.Close()
}

func (e *readEngine) Close() error {
	e.closed <- e.open.Load()
	return e.Engine.Close()
}

// Ensure that the store is not closed while a stream of watchers reads it that no caller waits for any more, and that none
// reads it later.
func TestData_Close_whileWatchersCatchUp(t *testing.T) {
	options := datatest.Options()
	data, log := datatest.Create(t, options, 1), datatest.Puts(1, 20, 2)
	if err := data.WAL.Append(wal.Batch{Hard: &consensus.HardState{Term: 2, Commit: 20}, Entries: log}); err != nil {
		t.Fatal(err)
	}
	if _, err := data.Machine.Apply(log); err != nil {
		t.Fatal(err)
	}
	if err := data.Engine.Flush(); err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, data)

	store := &readEngine{reading: make(chan struct{}), goOn: make(chan struct{}), closed: make(chan int64, 1)}
	inner := options.OpenEngine
	options.OpenEngine = func(dir string) (_ engine.Engine, err error) {
		store.Engine, err = inner(dir)
		return store, err
	}
	data = datatest.Open(t, options)
	hub := data.Machine.Hub()
	first, second := hub.Open(), hub.Open()
	defer first.Close()
	defer second.Close()
	for _, s := range []*watch.Stream{first, second} {
		s.Create(watch.Request{Key: []byte("k"), End: []byte("l"), Start: 2})
	}
	store.armed.Store(true)
	read := make(chan error, 1)
	go func() {
		_, err := first.Next(t.Context())
		read <- err
	}()
	<-store.reading
	ended := make(chan error, 1)
	go func() { ended <- data.Close() }()
	select {
	case open := <-store.closed:
		t.Errorf("the store was closed under %d iterators", open)
	case <-time.After(200 * time.Millisecond):
	}
	close(store.goOn)
	if err := <-read; err != nil {
		t.Errorf("the stream that read: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := second.Next(done); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a stream after the end: %v", err)
	}
}
