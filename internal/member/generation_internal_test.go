package member

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/storage/engine"
)

// Ensure that a reader keeps a store open that was replaced meanwhile, that its long work is cut short, that nobody gets
// the old store any more, and that it is closed once, when the reader is done.
func TestGeneration_letGo_whileRead(t *testing.T) {
	m := memberOfMachine(t)
	old := m.data.Generation
	held, ok := m.stores.hold()
	if !ok || held != old {
		t.Fatal("the present store can not be held")
	}
	work, cancel := held.within(t.Context())
	defer cancel()

	next := memberOfMachine(t).data.Generation
	m.stores.set(next)
	closed := 0
	old.letGo(func(*Generation, error) { closed++ })
	<-work.Done()
	if now, ok := m.stores.hold(); !ok || now != next {
		t.Error("a new reader does not get the next store")
	} else {
		now.release()
	}
	if old.hold() && closed > 0 {
		t.Error("a closed store can be held")
	} else {
		old.release()
	}
	if _, _, err := held.Engine.Get([]byte("k")); err != nil || closed != 0 {
		t.Errorf("the store was closed under its reader: %v", err)
	}
	held.release()
	if _, _, err := held.Engine.Get([]byte("k")); !errors.Is(err, engine.ErrClosed) || closed != 1 {
		t.Errorf("after the last reader: got %v, closed %d times", err, closed)
	}
	if old.hold() {
		t.Error("a closed store can be held")
	}
}

// Ensure that a stop ends long work on the store, also on one that a snapshot brings while the member stops.
func TestMember_Stop_endsLivesOfStores(t *testing.T) {
	m := memberOfMachine(t)
	first := m.data.Generation
	m.stop()
	<-first.life.Done()
	next := memberOfMachine(t).data.Generation
	m.stores.set(next)
	<-next.life.Done()
	if err := m.Defragment(t.Context()); err != nil && !errors.Is(err, errGenerationEnded) {
		t.Errorf("Defragment: %v", err)
	}
	_, release := m.Machine()
	release()
	next.letGo(nil)
	if machine, release := m.Machine(); machine == nil {
		t.Error("who asks after the end gets no machine")
	} else {
		release()
	}
}
