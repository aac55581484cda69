package recovery_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

func threeTold(told ...datadir.Address) *recovery.Survivor {
	return &recovery.Survivor{
		Identity: wal.Identity{Cluster: 9, Member: 1},
		Config: consensus.Config{Voters: ids{1, 2, 3}, Members: []consensus.Member{
			{ID: 1, PeerURLs: []string{"one"}}, {ID: 2, PeerURLs: []string{"two"}}, {ID: 3, PeerURLs: []string{"three"}},
		}},
		Told: told,
	}
}

// Ensure that one line does not say that two members are at one URL, also if one of them is there.
func TestSurvivor_Tell_bothInOneLine(t *testing.T) {
	s := threeTold()
	if _, err := s.Tell(map[consensus.MemberID][]string{2: {"two"}, 3: {"two"}}); err == nil {
		t.Error("one line puts two members at one URL")
	}
}

// Ensure that a member which an operator says to be where the configuration has it, and where an earlier word has another one, is
// looked for, and that the earlier word is dropped if it is there.
func TestSurvivor_Tell_backAgain(t *testing.T) {
	s := threeTold(datadir.Address{Member: 3, URLs: []string{"two"}, Instead: []string{"three"}},
		datadir.Address{Member: 2, URLs: []string{"new"}, Instead: []string{"two"}})
	told, err := s.Tell(map[consensus.MemberID][]string{2: {"two"}})
	if err != nil {
		t.Fatal(err)
	}
	for presence, want := range map[transport.Presence]string{transport.Silent: "refused", transport.Present: "[]"} {
		told, got := told, "refused"
		told.All = slices.Clone(told.All)
		_, err = told.Look(t.Context(), s, func(context.Context, consensus.MemberID, string) (transport.Presence, error) {
			return presence, nil
		})
		if err == nil {
			got = fmt.Sprint(told.All)
		}
		if got != want {
			t.Errorf("%v: %s (%v), want %s", presence, got, err, want)
		}
	}
}
