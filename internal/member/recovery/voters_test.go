package recovery_test

import (
	"context"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

// Ensure that a process without data which was started as a voter is no voter, whether the operator says that the voter is gone or
// not, and is named; that the voter is gone only the operator can say.
func TestSurvivor_FindVoters_emptyProcess(t *testing.T) {
	const voter, other = "http://host1:2380", "http://host1:2381"
	s := &recovery.Survivor{
		Identity: wal.Identity{Cluster: 9, Member: 98},
		Config: consensus.Config{Voters: ids{1, 97, 98}, Members: []consensus.Member{
			{ID: 1, Name: "m1", PeerURLs: []string{other, voter}}, {ID: 97, Name: "m97", PeerURLs: []string{"http://host97:2380"}},
		}},
	}
	for _, row := range []struct {
		name  string
		other transport.Presence
		lost  ids
		want  transport.Presence
	}{
		{"nobody named", transport.Silent, nil, transport.Empty},
		{"the operator names it", transport.Silent, ids{1}, transport.Empty},
		{"somebody else at another URL", transport.Another, nil, transport.Empty},
		{"something unknown at another URL", transport.Unsure, nil, transport.Unsure},
		{"the voter at another URL", transport.Present, ids{1}, transport.Present},
	} {
		find := func(_ context.Context, _ consensus.MemberID, url string) (transport.Presence, error) {
			switch url {
			case voter:
				return transport.Empty, nil
			case other:
				return row.other, nil
			}
			return transport.Silent, nil
		}
		found := s.FindVoters(t.Context(), find, row.lost)
		if found[0].Presence != row.want {
			t.Errorf("%s: got %d, want %d", row.name, found[0].Presence, row.want)
			continue
		}
		if err := s.CheckVoters(found); (err != nil) != (row.want != transport.Empty) {
			t.Errorf("%s: got %v", row.name, err)
		}
		want := "a process without data, which was started as m1, runs at " + voter + " (stop its unit on host host1)"
		if err := recovery.CheckEmpty(found); (err != nil) != (row.want == transport.Empty) ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
	told, err := s.Tell(map[consensus.MemberID][]string{1: {voter + "9"}})
	if err != nil {
		t.Fatal(err)
	}
	empty := func(context.Context, consensus.MemberID, string) (transport.Presence, error) {
		return transport.Empty, nil
	}
	if _, err := told.Look(t.Context(), s, empty); err == nil || !strings.Contains(err.Error(), "a process without data") {
		t.Errorf("a member is told to be where a process without data runs: %v", err)
	}
}
