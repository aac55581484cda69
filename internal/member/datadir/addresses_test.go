package datadir_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// Ensure that an operator's address counts until a later configuration gives the member other URLs, and that older and undone
// configurations do not end it.
func TestDialled(t *testing.T) {
	told := []datadir.Address{{Member: 2, URLs: []string{"new"}, Config: consensus.ConfigID{Index: 20, Term: 3},
		Instead: []string{"old"}}}
	isRemoved := func(id consensus.MemberID) bool { return id == 4 }
	member := func(urls ...string) consensus.Config {
		return consensus.Config{Members: []consensus.Member{{ID: 1, PeerURLs: []string{"one"}}, {ID: 2, PeerURLs: urls}}}
	}
	for name, tc := range map[string]struct {
		config consensus.Config
		id     consensus.ConfigID
		want   string // URLs that are dialled
		left   int    // addresses that still count
	}{
		"the configuration of then":                  {member("old"), consensus.ConfigID{Index: 20, Term: 3}, "[new old]", 1},
		"a later one for another reason":             {member("old"), consensus.ConfigID{Index: 30, Term: 4}, "[new old]", 1},
		"an older one, which is applied":             {member("before"), consensus.ConfigID{Index: 9, Term: 2}, "[new before]", 1},
		"a later one that knows it there":            {member("new"), consensus.ConfigID{Index: 25, Term: 4}, "[new]", 0},
		"a later one that has it somewhere else":     {member("else"), consensus.ConfigID{Index: 25, Term: 4}, "[else]", 0},
		"a later term at the place of an undone one": {member("else"), consensus.ConfigID{Index: 20, Term: 4}, "[else]", 0},
		"a later one without it":                     {consensus.Config{}, consensus.ConfigID{Index: 25, Term: 4}, "[]", 0},
	} {
		dialled := datadir.Dialled(&tc.config, tc.id, told)
		got := "[]"
		if at := slices.IndexFunc(dialled, func(m consensus.Member) bool { return m.ID == 2 }); at >= 0 {
			got = fmt.Sprint(dialled[at].PeerURLs)
		}
		left, gone := datadir.Outlived(&tc.config, tc.id, isRemoved, told)
		if got != tc.want || len(left) != tc.left || len(gone) != 1-tc.left {
			t.Errorf("%s: it dials %s, want %s; %d are left, want %d", name, got, tc.want, len(left), tc.left)
		}
	}
}

// Ensure that a member that only the operator named is dialled until a configuration has it or it was removed for ever.
func TestDialled_unknown(t *testing.T) {
	told := []datadir.Address{{Member: 3, URLs: []string{"new"}, Config: consensus.ConfigID{Index: 20, Term: 3}, Unknown: true}}
	for _, row := range []struct {
		name    string
		members []consensus.MemberID
		removed bool
		want    string
		left    int
	}{
		{"it is not known", []consensus.MemberID{1, 7}, false, "[1:one 3:new 7:one]", 1},
		{"a configuration has it", []consensus.MemberID{1, 3}, false, "[1:one 3:one]", 0},
		{"it was removed", []consensus.MemberID{1}, true, "[1:one 3:new]", 0},
	} {
		var config consensus.Config
		for _, id := range row.members {
			config.Members = append(config.Members, consensus.Member{ID: id, PeerURLs: []string{"one"}})
		}
		later := consensus.ConfigID{Index: 30, Term: 4}
		var got []string
		for _, m := range datadir.Dialled(&config, later, told) {
			got = append(got, fmt.Sprintf("%v:%s", m.ID, m.PeerURLs[0]))
		}
		left, _ := datadir.Outlived(&config, later, func(consensus.MemberID) bool { return row.removed }, told)
		if fmt.Sprint(got) != row.want || len(left) != row.left {
			t.Errorf("%s: it dials %v, want %s; %d are left", row.name, got, row.want, len(left))
		}
	}
}

// Ensure that former URLs are dialled as well, and that the file is gone once the operator's addresses are taken back.
func TestWriteAddresses(t *testing.T) {
	options := datadir.Options{FS: filestest.NewMem(), Dir: "d"}
	if err := options.FS.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	told := []datadir.Address{{Member: 1 << 63, URLs: []string{"new"}, Instead: []string{"old"}}}
	if err := datadir.WriteAddresses(options, told); err != nil {
		t.Fatal(err)
	}
	read, err := datadir.ReadAddresses(options)
	config := consensus.Config{Members: []consensus.Member{{ID: 1 << 63, PeerURLs: []string{"old"}, FormerURLs: []string{"former"}}}}
	if got := fmt.Sprint(datadir.Dialled(&config, consensus.FoundingID(), read)[0].PeerURLs); err != nil || got != "[new old former]" {
		t.Errorf("it dials %s: %v", got, err)
	}
	for range 2 {
		if err := datadir.WriteAddresses(options, nil); err != nil {
			t.Error(err)
		}
	}
	if read, err := datadir.ReadAddresses(options); len(read) > 0 || err != nil {
		t.Errorf("it reads %v, %v", read, err)
	}
}
