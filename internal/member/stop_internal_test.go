package member

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/member/datadir"
)

// Ensure that a stop ends long work on the store, also on a store that a snapshot brings while the member stops.
func TestMember_Stop_endsLivesOfStores(t *testing.T) {
	m := memberOfMachine(t)
	first := m.data.Generation
	m.life.stop()
	<-first.Life().Done()
	next := memberOfMachine(t).data.Generation
	m.stores.Set(next)
	<-next.Life().Done()
	if err := m.Defragment(t.Context()); err != nil && !errors.Is(err, datadir.ErrStoreEnded) {
		t.Errorf("Defragment: %v", err)
	}
}
