package configs_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/rules"
)

func configOf(voters ...consensus.MemberID) consensus.Config {
	c := consensus.Config{Voters: voters}
	for _, id := range voters {
		c.Members = append(c.Members, consensus.Member{ID: id})
	}
	return c
}

func jointOf(outgoing []consensus.MemberID, voters ...consensus.MemberID) consensus.Config {
	all := slices.Concat(outgoing, voters)
	slices.Sort(all)
	c := configOf(slices.Compact(all)...)
	c.Voters, c.Outgoing = voters, outgoing
	return c
}

// historyOf returns the history of member 1 in a log that begins with voters 1, 2 and 3 at index 1.
func historyOf(faults rules.Set) configs.History {
	h := configs.New(1, consensus.StorageID{}, nil, faults)
	h.Reset(&consensus.SnapshotMeta{
		Position: consensus.Position{Index: 1, Term: 1}, Config: configOf(1, 2, 3), ConfigID: consensus.ConfigID{Index: 1, Term: 1},
	}, 1, 1)
	h.Revise()
	h.CommitTo(1)
	return h
}

func changeAt(index consensus.Index, protocol consensus.Protocol, c consensus.Config, tombs ...consensus.MemberID) *consensus.Entry {
	return &consensus.Entry{Index: index, Term: 1, Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil,
		&consensus.ConfigChange{Protocol: protocol, Config: c, Tombs: tombs})}
}

// Ensure that a configuration comes into force when its protocol says.
func TestHistory_Revise(t *testing.T) {
	four := configOf(1, 2, 3, 4)
	for _, x := range []struct {
		name                          string
		protocol                      consensus.Protocol
		config                        consensus.Config
		appended, committed, applied  int // voters in force then
		joint                         bool
		jointOnceCommitted            bool
		settledByCommit, settledLater bool
	}{
		{"single: at append", consensus.ProtocolSingle, four, 4, 4, 4, false, false, true, true},
		{"apply: when applied", consensus.ProtocolApply, four, 3, 3, 4, false, false, false, true},
		{"activate: joint, and alone once committed", consensus.ProtocolActivate,
			jointOf([]consensus.MemberID{1, 2, 3}, 3, 4), 2, 2, 2, true, false, false, true},
		{"joint: until a second entry", consensus.ProtocolJoint,
			jointOf([]consensus.MemberID{1, 2, 3}, 3, 4), 2, 2, 2, true, true, false, false},
	} {
		h := historyOf(rules.Set{})
		if proven := h.Append(changeAt(5, x.protocol, x.config)); proven != 1 {
			t.Errorf("%s: proves commit up to %d, want 1", x.name, proven)
		}
		h.Revise()
		if got := len(h.Config().Voters); got != x.appended || h.Config().IsJoint() != x.joint {
			t.Errorf("%s: appended, %d voters decide, joint %t", x.name, got, h.Config().IsJoint())
		}
		reached := h.CommitTo(5)
		h.Revise()
		if got := len(h.Config().Voters); got != x.committed || h.Config().IsJoint() != x.jointOnceCommitted {
			t.Errorf("%s: committed, %d voters decide, joint %t", x.name, got, h.Config().IsJoint())
		}
		if len(reached) != 1 || !reached[0].Committed || h.LastSettled() != x.settledByCommit {
			t.Errorf("%s: commit brought %+v, settled %t", x.name, reached, h.LastSettled())
		}
		h.ApplyTo(5)
		h.Revise()
		if got := len(h.Config().Voters); got != x.applied {
			t.Errorf("%s: applied, %d voters decide", x.name, got)
		}
		if h.Last().NeedsNotice() {
			h.Append(&consensus.Entry{Index: 6, Term: 1, Kind: consensus.EntryNoop,
				Payload: consensus.AppendConfigID(nil, consensus.ConfigID{Index: 5, Term: 1})})
		}
		if h.CommitTo(6); h.LastSettled() != x.settledLater {
			t.Errorf("%s: with the notice committed, settled %t", x.name, h.LastSettled())
		}
	}
}

// Ensure that truncation undoes configurations, the last one first.
func TestHistory_Truncate(t *testing.T) {
	h := historyOf(rules.Set{})
	h.Append(changeAt(5, consensus.ProtocolSingle, configOf(1, 2)))
	h.Append(changeAt(7, consensus.ProtocolSingle, configOf(1)))
	if h.Revise(); len(h.Config().Voters) != 1 {
		t.Fatalf("in force: %+v", h.Config())
	}
	undone := h.Truncate(5)
	if len(undone) != 2 || undone[0].Index != 7 || undone[1].Index != 5 {
		t.Errorf("undone: %v", undone)
	}
	if changed := h.Revise(); !changed || len(h.Config().Voters) != 3 || h.ID().Index != 1 {
		t.Errorf("in force: %v %+v, changed %t", h.ID(), h.Config(), changed)
	}
}

// Ensure that members are reported as removed once the change is settled, once, and are fed until then.
func TestHistory_CommitTo_removed(t *testing.T) {
	h := historyOf(rules.Set{})
	h.Append(changeAt(5, consensus.ProtocolSingle, configOf(1, 2), 3))
	h.Revise()
	if !slices.Contains(h.Recipients(), 3) || !h.Knows(3) {
		t.Errorf("recipients before: %v", h.Recipients())
	}
	reached := h.CommitTo(5)
	if len(reached) != 1 || !slices.Equal(reached[0].Removed, []consensus.MemberID{3}) || !reached[0].Settled {
		t.Fatalf("reached %+v", reached)
	}
	h.AddTombstone(3)
	if slices.Contains(h.Recipients(), 3) || !h.IsTombstone(3) || len(h.CommitTo(9)) != 0 {
		t.Errorf("recipients after: %v", h.Recipients())
	}
}

// Ensure that members of all configurations of the log are known while one is in force, each as the last one has it, and that those
// which were removed for ever are not.
func TestHistory_Others(t *testing.T) {
	h := historyOf(rules.Set{})
	h.Revise()
	if len(h.Others()) != 0 {
		t.Errorf("with one configuration: %+v", h.Others())
	}
	at := func(url string, c consensus.Config) consensus.Config {
		for i := range c.Members {
			c.Members[i].PeerURLs = []string{url}
		}
		return c
	}
	h.Append(changeAt(5, consensus.ProtocolSingle, at("http://five:1", configOf(1, 2, 3, 4))))
	h.Append(changeAt(7, consensus.ProtocolSingle, at("http://seven:1", configOf(1, 2, 3, 4, 5))))
	h.Append(changeAt(9, consensus.ProtocolSingle, at("http://nine:1", configOf(1))))
	h.AddTombstone(2)
	h.Revise()
	var others []consensus.MemberID
	for _, m := range h.Others() {
		others = append(others, m.ID)
		if m.PeerURLs[0] != "http://seven:1" {
			t.Errorf("member %v is known at %v", m.ID, m.PeerURLs)
		}
	}
	if !slices.Equal(others, []consensus.MemberID{3, 4, 5}) {
		t.Errorf("others: %v", others)
	}
	h.Append(changeAt(11, consensus.ProtocolApply, configOf(1, 6)))
	if h.Truncate(9); !h.Revise() || len(h.Others()) != 0 {
		t.Errorf("in force %v, others: %+v", h.ID(), h.Others())
	}
}

// Ensure that a joint configuration needs a majority of each set; counting all voters together, a fault, does not.
func TestHistory_Reached(t *testing.T) {
	reached := func(id consensus.MemberID) uint64 {
		if id >= 3 {
			return 9
		}
		return 2
	}
	for _, broken := range []bool{false, true} {
		h := historyOf(rules.Set{rules.UnionOfJoint: broken})
		h.Append(changeAt(5, consensus.ProtocolJoint, jointOf([]consensus.MemberID{1, 2, 3}, 3, 4, 5)))
		h.Revise()
		if got := h.Reached(reached, false); (got == 2) == broken {
			t.Errorf("a majority reached %d, with the fault %t", got, broken)
		}
	}
}

// Ensure that a snapshot in the midst of a change carries the change.
func TestHistory_MetaAt(t *testing.T) {
	h := historyOf(rules.Set{})
	h.Append(changeAt(5, consensus.ProtocolApply, configOf(1, 2), 3))
	h.CommitTo(8)
	before, within := h.MetaAt(consensus.Position{Index: 4, Term: 1}), h.MetaAt(consensus.Position{Index: 8, Term: 1})
	if before.Open || len(before.Config.Voters) != 3 || before.ConfigID.Index != 1 {
		t.Errorf("before the change: %+v", before)
	}
	if !within.Open || len(within.Config.Voters) != 2 || !slices.Equal(within.Tombs, []consensus.MemberID{3}) {
		t.Errorf("within: %+v", within)
	}
	if h.Compact(8); h.Len() != 1 || h.Last().ID.Index != 5 {
		t.Errorf("after compaction %d records are left", h.Len())
	}
}
