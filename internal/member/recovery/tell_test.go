package recovery_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

// Ensure that an operator's words about others are kept, those about the member itself are looked at only, no two members
// are told to be at one URL, and two may exchange theirs.
func TestSurvivor_Tell(t *testing.T) {
	s := &recovery.Survivor{
		Identity: wal.Identity{Cluster: 9, Member: 1},
		Config: consensus.Config{Voters: ids{1, 2, 3}, Members: []consensus.Member{
			{ID: 1, PeerURLs: []string{"one"}}, {ID: 2, PeerURLs: []string{"two"}}, {ID: 3, PeerURLs: []string{"three"}},
		}},
	}
	at := func(pairs ...string) map[consensus.MemberID][]string {
		places := map[consensus.MemberID][]string{}
		for i, url := range pairs {
			if url != "" {
				places[consensus.MemberID(i+1)] = []string{url}
			}
		}
		return places
	}
	for _, row := range []struct {
		name   string
		places map[consensus.MemberID][]string
		news   int
		wrong  bool
	}{
		{"one has moved", at("", "new"), 1, false},
		{"this one has moved, too", at("elsewhere", "new"), 1, false},
		{"one is where it was", at("", "two"), 0, false},
		{"two have exchanged their URLs", at("", "three", "two"), 2, false},
		{"two are at one URL", at("", "new", "new"), 0, true},
		{"one is where another one was", at("", "three"), 1, false}, // if it is found there
		{"one is where this one was, of which nothing is said", at("", "one"), 1, false},
		{"one is where this one was", at("elsewhere", "one"), 1, false},
	} {
		told, err := s.Tell(row.places)
		if (err != nil) != row.wrong || len(told.News) != row.news {
			t.Errorf("%s: %+v, %v", row.name, told, err)
		}
	}
}

// Ensure that a URL at which another process answers is refused, and one at which no process answers is not.
func TestTold_Look(t *testing.T) {
	s := &recovery.Survivor{
		Identity: wal.Identity{Cluster: 9, Member: 1},
		Config: consensus.Config{Voters: ids{1, 2}, Members: []consensus.Member{
			{ID: 1}, {ID: 2, Name: "m2", PeerURLs: []string{"two"}},
		}},
	}
	told, err := s.Tell(map[consensus.MemberID][]string{2: {"new"}})
	if err != nil {
		t.Fatal(err)
	}
	for presence, wrong := range map[transport.Presence]string{
		transport.Silent: "", transport.Present: "", transport.Unsure: "",
		transport.Another: "another process answers", transport.NoPeerPort: "is a wrong URL",
	} {
		find := func(context.Context, consensus.MemberID, string) (transport.Presence, error) {
			return presence, &transport.NoPeerPortError{Text: "a client port"}
		}
		_, err := told.Look(t.Context(), s, find)
		if (err != nil) != (wrong != "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%d: %v", presence, err)
		}
	}
}

// Ensure that a URL at which the configuration has another member is taken only if the member that is told to be there answers:
// the other one may have been removed since. Else the error says what was found, and what to do.
func TestTold_Look_whereAnotherWas(t *testing.T) {
	s := &recovery.Survivor{
		Identity: wal.Identity{Cluster: 9, Member: 1},
		Config: consensus.Config{Voters: ids{1, 2, 3}, Members: []consensus.Member{
			{ID: 1, Name: "m1", PeerURLs: []string{"one"}}, {ID: 2, Name: "m2", PeerURLs: []string{"two"}},
			{ID: 3, Name: "m3", PeerURLs: []string{"three"}},
		}},
	}
	why := errors.New("the reason")
	for _, row := range []struct {
		url      string
		presence transport.Presence
		err      error
		wanted   string
	}{
		{"two", transport.Present, nil, ""},
		{"two", transport.Silent, nil, "If m2 was removed from the cluster, start m3 there"},
		{"one", transport.Present, nil, ""},
		{"one", transport.Silent, nil, "Also give the URL at which m1 will be started: m1=URL"},
		{"two", transport.Unsure, why, "is not known: the reason"},
		{"two", transport.Another, nil, "another process answers there, which is not m3"},
		{"two", transport.NoPeerPort, why, "m3=two is a wrong URL: the reason"},
	} {
		told, err := s.Tell(map[consensus.MemberID][]string{3: {row.url}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = told.Look(t.Context(), s, func(_ context.Context, id consensus.MemberID, url string) (transport.Presence, error) {
			if id != 3 || url != row.url {
				t.Errorf("asked for %v at %s", id, url)
			}
			return row.presence, row.err
		})
		if (err == nil) != (row.wanted == "") || err != nil &&
			(!strings.Contains(err.Error(), row.wanted) || !strings.Contains(err.Error(), "nothing was changed")) {
			t.Errorf("%s, %d: got %v, want %q", row.url, row.presence, err, row.wanted)
		}
	}
}

// Ensure that a later word that a member is where another one was told to be replaces the earlier one, if the member answers there;
// and that what was taken before is not asked for again.
func TestTold_Look_laterWord(t *testing.T) {
	s := &recovery.Survivor{
		Identity: wal.Identity{Cluster: 9, Member: 1},
		Config: consensus.Config{Voters: ids{1, 2, 3, 4}, Members: []consensus.Member{
			{ID: 1}, {ID: 2, PeerURLs: []string{"two"}}, {ID: 3, PeerURLs: []string{"three"}}, {ID: 4, PeerURLs: []string{"four"}},
		}},
		Told: []datadir.Address{{Member: 3, URLs: []string{"new"}, Instead: []string{"three"}}},
	}
	look := func(presence transport.Presence, places map[consensus.MemberID][]string) (recovery.Told, error) {
		told, err := s.Tell(places)
		if err != nil {
			t.Fatal(err)
		}
		_, err = told.Look(t.Context(), s, func(context.Context, consensus.MemberID, string) (transport.Presence, error) {
			return presence, nil
		})
		return told, err
	}
	if _, err := look(transport.Silent, map[consensus.MemberID][]string{2: {"new"}}); err == nil {
		t.Error("two members are told to be at one URL, at which nobody answers")
	}
	told, err := look(transport.Present, map[consensus.MemberID][]string{2: {"new"}})
	if err != nil || len(told.All) != 1 || told.All[0].Member != 2 {
		t.Errorf("the later word: %+v, %v", told.All, err)
	}
	s.Told = []datadir.Address{{Member: 2, URLs: []string{"three"}, Instead: []string{"two"}}} // taken while it answered there
	if told, err = look(transport.Silent, map[consensus.MemberID][]string{4: {"elsewhere"}}); err != nil || len(told.All) != 2 {
		t.Errorf("a word about another one: %+v, %v", told.All, err)
	}
}

// Ensure that a line for all members serves the one, too, that is now where a member was that is gone for good: of itself it keeps
// nothing, and it does not answer while it is stopped.
func TestTold_Look_itself(t *testing.T) {
	s := &recovery.Survivor{
		Identity: wal.Identity{Cluster: 9, Member: 1},
		Config: consensus.Config{Voters: ids{1, 2, 3}, Members: []consensus.Member{
			{ID: 1, PeerURLs: []string{"one"}}, {ID: 2, PeerURLs: []string{"two"}}, {ID: 3, PeerURLs: []string{"three"}},
		}},
	}
	told, err := s.Tell(map[consensus.MemberID][]string{1: {"three"}, 2: {"new"}})
	if err != nil || len(told.News) != 1 {
		t.Fatalf("%+v, %v", told, err)
	}
	nobody := func(context.Context, consensus.MemberID, string) (transport.Presence, error) {
		return transport.Silent, nil
	}
	if _, err := told.Look(t.Context(), s, nobody); err != nil {
		t.Error(err)
	}
}

// Ensure that a member is told where another one is although the last configuration in its log says so, too: that one may
// not be in force.
func TestSurvivor_Tell_notInForce(t *testing.T) {
	const now = "http://now:2380"
	moved := membersOf(ids{1, 2, 3})
	moved.Members[1].PeerURLs = []string{now}
	s := inspect(t, survivor(t, consensus.HardState{Term: 2},
		configEntry(4, 2, consensus.ConfigChange{Protocol: consensus.ProtocolApply, Config: moved})))
	told, err := s.Tell(map[consensus.MemberID][]string{2: {now}})
	if err != nil || len(told.News) != 1 {
		t.Errorf("%+v, %v", told, err)
	}
}

// Ensure that a member is told where one is that the last configuration in its log does not have: the one before it may be in
// force.
func TestSurvivor_Tell_notInLast(t *testing.T) {
	for protocol, commit := range map[consensus.Protocol]consensus.Index{
		consensus.ProtocolApply: 3, consensus.ProtocolSingle: 3, consensus.ProtocolJoint: 4,
	} {
		s := inspect(t, survivor(t, consensus.HardState{Term: 2, Commit: commit},
			configEntry(4, 2, consensus.ConfigChange{Protocol: protocol, Config: membersOf(ids{1, 3, 4})})))
		told, err := s.Tell(map[consensus.MemberID][]string{2: {"http://now:2380"}})
		if want := commit < 4; err != nil || (len(told.News) == 1) != want {
			t.Errorf("%v: %+v, %v, want a word about member 2: %t", protocol, told, err, want)
		}
		if id, err := s.Find("2"); (err == nil) != (commit < 4) {
			t.Errorf("%v: found %v, %v", protocol, id, err)
		}
	}
}

// Ensure that a line may repeat what the last configuration says of a member that does not run, at the URL of one that the
// configuration before it has.
func TestSurvivor_Tell_repeatsTheLast(t *testing.T) {
	const theirs, now = "http://theirs:2380", "http://now:2380"
	before, last := membersOf(ids{1, 2, 3}), membersOf(ids{1, 3}, ids{4})
	before.Members[1].PeerURLs, last.Members[2].PeerURLs = []string{theirs}, []string{theirs}
	s := inspect(t, survivor(t, consensus.HardState{Term: 2, Commit: 4},
		configEntry(4, 2, consensus.ConfigChange{Protocol: consensus.ProtocolJoint, Config: before}),
		configEntry(5, 2, consensus.ConfigChange{Protocol: consensus.ProtocolSingle, Config: last})))
	told, err := s.Tell(map[consensus.MemberID][]string{3: {now}, 4: {theirs}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = told.Look(t.Context(), s, silent); err != nil || len(told.News) != 1 || told.News[0].Member != 3 {
		t.Errorf("%+v, %v", told.News, err)
	}
}

func nowhere(context.Context, consensus.MemberID, string) (transport.Presence, error) {
	return transport.Silent, nil
}

// Ensure that a member that no configuration of the data has is taken by its id where it answers, and nowhere else.
func TestTold_Look_unknown(t *testing.T) {
	s := &recovery.Survivor{
		Identity: wal.Identity{Cluster: 9, Member: 1},
		Config: consensus.Config{Voters: ids{1, 2}, Members: []consensus.Member{
			{ID: 1, PeerURLs: []string{"one"}}, {ID: 2, Name: "m2", PeerURLs: []string{"two"}},
		}},
	}
	for _, name := range []string{"m3", "beef", "0000000000", "fedcba98765432101"} {
		if id, err := s.FindAny(name); err == nil || !strings.Contains(err.Error(), "is named by its id") {
			t.Errorf("%s is taken for %v: %v", name, id, err)
		}
	}
	id, err := s.FindAny("fedcba9876543210")
	if err != nil || id != 0xfedcba9876543210 {
		t.Fatalf("found %v: %v", id, err)
	}
	if known, err := s.FindAny("m2"); err != nil || known != 2 {
		t.Errorf("m2 is %v: %v", known, err)
	}
	for presence, wrong := range map[transport.Presence]string{
		transport.Present: "", transport.Silent: "the data here have no member fedcba9876543210", transport.Unsure: "whether it does is not known: the reason",
		transport.Another: "another process answers",
	} {
		told, err := s.Tell(map[consensus.MemberID][]string{id: {"new"}})
		if err != nil || len(told.All) != 1 || told.All[0].Member != id {
			t.Fatalf("told %+v: %v", told, err)
		}
		_, err = told.Look(t.Context(), s, func(context.Context, consensus.MemberID, string) (transport.Presence, error) {
			return presence, errors.New("the reason")
		})
		if (err != nil) != (wrong != "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%d: %v", presence, err)
		}
	}
	if _, err := s.Tell(map[consensus.MemberID][]string{id: {"new"}, 2: {"new"}}); err == nil {
		t.Error("two members are told to be at one URL")
	}
	s.Told = []datadir.Address{{Member: id, URLs: []string{"new"}, Unknown: true}}
	told, err := s.Tell(map[consensus.MemberID][]string{2: {"new"}})
	if _, look := told.Look(t.Context(), s, nowhere); err != nil || look == nil {
		t.Errorf("a member is told to be where an earlier word has one that the data do not have: %v", err)
	}
	for _, back := range []map[consensus.MemberID][]string{{id: {}}, {id: {}, 2: {"new"}}} {
		told, err := s.Tell(back)
		if err != nil || len(told.All) != len(back)-1 || len(told.All) == 1 && told.All[0].Member != 2 {
			t.Errorf("after %v: told %+v: %v", back, told, err)
		}
	}
	s.Tombstones = ids{id}
	if found, err := s.FindAny(id.String()); err == nil || !strings.Contains(err.Error(), "was removed for ever") {
		t.Errorf("a removed member is taken for %v: %v", found, err)
	}
}
