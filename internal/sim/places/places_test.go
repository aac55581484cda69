package places_test

import (
	"testing"

	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/sim/places"
)

// Ensure that each kind of place proves what it should, and no more.
func TestPlace_Sight(t *testing.T) {
	empty := places.Process{Claim: &identity.Claim{Cluster: 0x51, Member: 2, Empty: true}, Reached: true}
	runs := places.Process{Claim: &identity.Claim{Cluster: 0x51, Member: 2}, Reached: true}
	for _, tc := range []struct {
		kind    places.Kind
		process places.Process
		want    identity.Presence
	}{
		{places.Nobody, places.Process{}, identity.Silent},
		{places.Silence, places.Process{}, identity.Unsure},
		{places.Mute, places.Process{}, identity.Unsure},
		{places.Program, places.Process{}, identity.NoPeerPort},
		{places.Foreign, places.Process{}, identity.Another},
		{places.ClientPort, runs, identity.NoPeerPort},
		{places.ClientPort, places.Process{Reached: true}, identity.Silent},
		{places.PeerPort, runs, identity.Present},
		{places.PeerPort, empty, identity.Empty},
		{places.Ghost, empty, identity.Empty},
		{places.PeerPort, places.Process{Reached: true}, identity.Silent},
		{places.PeerPort, places.Process{Claim: runs.Claim}, identity.Unsure},
	} {
		sight := places.Place{Kind: tc.kind}.Sight(2, tc.process)
		if got := sight.Judge(identity.Sought{Cluster: 0x51, Member: 2}, identity.Rules{}); got != tc.want {
			t.Errorf("%v, %+v: %v, want %v", tc.kind, tc.process, got, tc.want)
		}
	}
}

func TestMap(t *testing.T) {
	var m places.Map
	m.Settle("http://a:2380", places.Place{Kind: places.PeerPort, Machine: 3})
	m.Divert("http://a:2380", places.Place{Kind: places.PeerPort, Machine: 5})
	if p := m.At("http://a:2379"); !m.Diverted("http://a:2380") || p != (places.Place{Kind: places.ClientPort, Machine: 5}) {
		t.Errorf("its client port is %+v", p)
	}
	m.Restore("http://a:2380")
	if p := m.At(places.ClientURL("http://a:2380")); m.Diverted("http://a:2380") || p.Machine != 3 {
		t.Errorf("restored, its client port is %+v", p)
	}
	if p := m.At("http://b:2379"); p != (places.Place{}) {
		t.Errorf("where nobody ever was is %+v", p)
	}
}
