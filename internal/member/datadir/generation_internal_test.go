package datadir

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// memoryStore is a store on a disk of its own.
func memoryStore(t *testing.T) *Generation {
	t.Helper()
	store, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	g := newGeneration(firstGeneration)
	g.Engine = store
	return g
}

// Ensure that a reader keeps a replaced store open, that the reader's long work is cut short, that Acquire does not return the
// old store any more, and that the store is closed once, when the reader is done.
func TestStores_Set_whileRead(t *testing.T) {
	old, next := memoryStore(t), memoryStore(t)
	var stores Stores
	stores.Set(old)
	held, ok := stores.Acquire()
	if !ok || held != old {
		t.Fatal("the present store can not be held")
	}
	work, cancel := held.Within(t.Context())
	defer cancel()

	stores.Set(next)
	closed := 0
	old.giveUp(func(*Generation, error) { closed++ })
	<-work.Done()
	if now, ok := stores.Acquire(); !ok || now != next {
		t.Error("a new reader does not get the next store")
	} else {
		now.Release()
	}
	if old.Acquire() && closed > 0 {
		t.Error("a closed store can be held")
	} else {
		old.Release()
	}
	if _, _, err := held.Engine.Get([]byte("k")); err != nil || closed != 0 {
		t.Errorf("the store was closed under its reader: %v", err)
	}
	held.Release()
	if _, _, err := held.Engine.Get([]byte("k")); !errors.Is(err, engine.ErrClosed) || closed != 1 {
		t.Errorf("after the last reader: got %v, closed %d times", err, closed)
	}
	if old.Acquire() {
		t.Error("a closed store can be held")
	}
}

// Ensure that Stop ends long work on the current store and on one that a snapshot brings later, and that a caller of Machine
// still gets the machine of a closed store.
func TestStores_Stop(t *testing.T) {
	first, next := memoryStore(t), memoryStore(t)
	next.Machine = new(apply.Machine)
	var stores Stores
	stores.Set(first)
	work, cancel := first.Within(t.Context())
	defer cancel()
	stores.Stop()
	<-work.Done()
	if cause := context.Cause(work); !errors.Is(cause, ErrStoreEnded) {
		t.Errorf("work on the store ended by %v", cause)
	}
	stores.Set(next)
	<-next.Life().Done()
	next.giveUp(nil)
	if machine, release := stores.Machine(); machine != next.Machine {
		t.Error("who asks after the end gets no machine")
	} else {
		release()
	}
}

// closingEngine is one whose Close waits.
type closingEngine struct {
	engine.Engine
	closing chan struct{} // closed when Close has begun
	goOn    chan struct{}
}

func (e *closingEngine) Close() error {
	close(e.closing)
	<-e.goOn
	return e.Engine.Close()
}

// Ensure that nobody gets the machine of a store that is being closed: the engine may not know yet that it must refuse readers.
func TestStores_Machine_whileClosing(t *testing.T) {
	g := memoryStore(t)
	store := &closingEngine{g.Engine, make(chan struct{}), make(chan struct{})}
	g.Engine, g.Machine = store, new(apply.Machine)
	var stores Stores
	stores.Set(g)
	go g.giveUp(nil)
	<-store.closing
	read := make(chan error, 1)
	go func() {
		machine, release := stores.Machine()
		defer release()
		_, _, err := store.Get([]byte("k"))
		if machine != g.Machine {
			err = errors.New("another machine")
		}
		read <- err
	}()
	select {
	case err := <-read:
		t.Errorf("a store that is being closed was read: %v", err)
		close(store.goOn)
		return
	case <-time.After(100 * time.Millisecond):
	}
	close(store.goOn)
	if err := <-read; !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
