package server

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member"
)

// Ensure that a process finds whose place it has by its peer URLs, and reports itself as that member, with its own data directory,
// in the epoch of the cluster: else it is refused for something else than a lost disk.
func TestBootstrap_placeIn(t *testing.T) {
	epoch := consensus.Epoch{Number: 1, Recovery: [16]byte{7}}
	d := member.Description{Cluster: 0xc1, Epoch: epoch, Bound: []consensus.MemberID{1, 2}, Members: []consensus.Member{
		{ID: 1, Name: "m1", PeerURLs: []string{"http://a:1"}}, {ID: 2, PeerURLs: []string{"http://a:2", "http://b:2"}},
		{ID: 3, Name: "m3", PeerURLs: []string{"http://a:3"}},
	}}
	for _, row := range []struct {
		name  string
		own   []string
		owner consensus.MemberID
		lost  bool
		said  string
	}{
		{"bound to another directory", []string{"a:1"}, 1, true, "member reset m1`"},
		{"at two URLs, without a name", []string{"b:2", "a:2"}, 2, true, "member reset " + consensus.MemberID(2).String() + "`"},
		{"not bound yet", []string{"a:3"}, 3, false, ""},
		{"at a part of its URLs", []string{"a:2"}, consensus.NoMember, false, ""},
		{"nobody is there", []string{"a:4"}, consensus.NoMember, false, ""},
	} {
		cfg := &config.Config{}
		for _, address := range row.own {
			cfg.Advertise.PeerURLs = append(cfg.Advertise.PeerURLs, config.URL{Scheme: "http", Address: address})
		}
		p := (&bootstrap{cfg: cfg}).placeIn(d)
		if p.owner.ID != row.owner || p.isLost() != row.lost {
			t.Errorf("%s: found %v, lost %v", row.name, p.owner.ID, p.isLost())
		}
		storage := consensus.StorageID{9}
		want := identity.Claim{Cluster: 0xc1, Epoch: epoch, Member: row.owner, Storage: storage, Address: "x"}
		if got := p.claimWith(storage, "x"); got != want {
			t.Errorf("%s: it claims %v, want %v", row.name, &got, &want)
		}
		text := p.lostText(storage)
		if row.lost && (!strings.Contains(text, row.said) || strings.Index(text, "not mounted") > strings.Index(text, "reset")) {
			t.Errorf("%s: %s", row.name, text)
		}
	}
}

// Ensure that a process that has the URL of a member that runs is told so, by the name of that member, and never to take anything
// away from it.
func TestPlace_residentText(t *testing.T) {
	p := place{owner: consensus.Member{ID: 2, Name: "m2", PeerURLs: []string{"http://a:2"}}}
	text := p.residentText()
	if !strings.HasPrefix(text, "http://a:2 is probably mistyped") || !strings.Contains(text, "member m2") {
		t.Errorf("got %s", text)
	}
	for _, wrong := range []string{"remove", "reset", "replace", "lost"} {
		if strings.Contains(text, wrong) {
			t.Errorf("it speaks of %q: %s", wrong, text)
		}
	}
}
