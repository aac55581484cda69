package member

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/membership/autopilot"
)

// Ensure that a member without a leader asks only at the addresses of its configuration and of the operator, dials the learned
// addresses beside those, asks nothing at learned addresses, and takes no answer of a process that is no member.
func TestToldAddresses_learn(t *testing.T) {
	config := &consensus.Config{Voters: []consensus.MemberID{1, 2, 3}, Members: []consensus.Member{
		{ID: 1, PeerURLs: []string{"http://a:1"}}, {ID: 2, PeerURLs: []string{"http://b:1"}}, {ID: 3, PeerURLs: []string{"http://c:1"}},
	}}
	id, newer := consensus.ConfigID{Index: 5, Term: 1}, consensus.ConfigID{Index: 9, Term: 2}
	a := &toldAddresses{logger: slog.New(slog.DiscardHandler), told: []datadir.Address{
		{Member: 2, URLs: []string{"http://b:2"}, Config: id, Instead: []string{"http://b:1"}},
	}}
	var dialled [][]consensus.Member
	inForce := raft.ConfigInForce{ID: id, Config: *config}
	a.configure(&inForce, func(c *consensus.Config) { dialled = append(dialled, c.Members) })
	asks := func(second int) string {
		return strings.Join(a.asks(3, time.Duration(second)*time.Second, time.Second, false), " ")
	}
	if got := asks(0) + asks(1); got != "http://a:1 http://b:1 http://b:2" {
		t.Errorf("it asks at %s", got)
	}
	own := &identity.Claim{Cluster: 7, Member: 3}
	said := autopilot.Whereabouts{Cluster: 7, Member: 2, Config: newer, Members: []autopilot.Whereabout{
		{Member: 1, URLs: []string{"http://a:2"}}, {Member: 4, Storage: consensus.StorageID{4}, URLs: []string{"http://d:1"}}, {Member: 3, URLs: []string{"http://x:1"}},
	}}
	other := said
	other.Cluster = 8
	a.learn(own, "http://b:2", &other)
	if len(dialled) != 1 {
		t.Errorf("a member of another cluster is believed: %v", dialled[1:])
	}
	a.learn(own, "http://b:2", &said)
	last := dialled[len(dialled)-1]
	if len(dialled) != 2 || len(last) != 4 || last[3].ID != 4 || last[3].Storage != (consensus.StorageID{4}) ||
		!slices.Equal(last[0].PeerURLs, []string{"http://a:2", "http://a:1"}) ||
		!slices.Equal(last[2].PeerURLs, []string{"http://c:1"}) {
		t.Errorf("it dials %v", last)
	}
	if got := asks(9); got != "http://a:1 http://b:1 http://b:2" {
		t.Errorf("after it has learned it asks at %s", got)
	}
	nobody := func(consensus.MemberID) bool { return false }
	a.forget(config, id, nobody)
	others := inForce
	others.Others = []consensus.Member{{ID: 7, PeerURLs: []string{"http://seven:1"}}}
	var last7 []consensus.Member
	b := &toldAddresses{logger: a.logger}
	b.configure(&others, func(c *consensus.Config) { last7 = c.Members })
	if len(last7) != 4 || last7[3].ID != 7 {
		t.Errorf("it dials %v, want the member of an earlier configuration, too", last7)
	}
	if b.forget(config, id, func(id consensus.MemberID) bool { return id == 7 }); len(last7) != 3 {
		t.Errorf("it dials %v after one was removed for ever", last7)
	}
	if a.reconnect(); len(dialled[2][0].PeerURLs) != 2 {
		t.Error("it forgets before its configuration is as new")
	}
	moved := config.Clone()
	moved.Members[0].PeerURLs = []string{"http://a:2"}
	a.told = nil
	a.forget(&moved, newer, nobody)
	if a.reconnect(); len(dialled[3][0].PeerURLs) != 1 {
		t.Error("it does not forget")
	}
}
