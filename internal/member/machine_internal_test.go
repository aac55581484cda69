package member

import (
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// memberOfMachine is a member of which only the state machine works.
func memberOfMachine(t *testing.T) *Member {
	t.Helper()
	return memberOf(t, consensus.Config{Voters: []consensus.MemberID{1}})
}

func memberOf(t *testing.T, first consensus.Config) *Member {
	t.Helper()
	options := datatest.Options()
	identity := wal.Identity{Cluster: 1, Member: 1, Storage: wal.StorageID{1}}
	if err := datadir.Create(options, identity, first); err != nil {
		t.Fatal(err)
	}
	data := datatest.Open(t, options)
	return New(Options{Data: data, Clock: env.WallClock{}})
}
