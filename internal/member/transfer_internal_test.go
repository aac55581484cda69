package member

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/lanes"
)

// Ensure that leadership goes only from a leader to a voter that may lead, and that the caller learns the outcome.
func TestTransfer_to(t *testing.T) {
	for _, row := range []struct {
		name     string
		leader   consensus.MemberID
		to       consensus.MemberID
		spared   []consensus.MemberID
		follows  consensus.MemberID // the leader once the transfer has begun
		want     error
		cordoned bool
		begins   bool
	}{
		{name: "another leads", leader: 2, to: 3, want: ErrNotLeader},
		{name: "to a learner", leader: 1, to: 4, want: ErrBadTransferee},
		{name: "to one marked corrupt", leader: 1, to: 3, spared: []consensus.MemberID{3}, cordoned: true},
		{name: "it takes over", leader: 1, to: 2, follows: 2, begins: true},
		{name: "another takes over", leader: 1, to: 2, follows: 3, want: ErrTransferTimeout, begins: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			leader := lanes.NewKnownLeader(1)
			leader.Follow(row.leader, 1, time.Now)
			begun := false
			moving := &transfer{
				leader: leader, patience: time.Second, stopping: t.Context(),
				status: func() raft.Status {
					config := consensus.Config{Voters: []consensus.MemberID{1, 2, 3}, Learners: []consensus.MemberID{4}}
					return raft.Status{ID: 1, Role: raft.Leader, Config: config, Spared: row.spared}
				},
				begin: func(consensus.MemberID) {
					begun = true
					go leader.Follow(row.follows, 2, time.Now)
				},
				nameOf: consensus.MemberID.String,
			}
			err := moving.to(t.Context(), row.to)
			var cordoned *CordonedError
			if errors.As(err, &cordoned) != row.cordoned || !row.cordoned && !errors.Is(err, row.want) || begun != row.begins {
				t.Errorf("%s: begun %t, %v", row.name, begun, err)
			}
		})
	}
}

// Ensure that a caller that waits for a transfer gets an error when its context ends or the member stops.
func TestTransfer_to_ends(t *testing.T) {
	leader := lanes.NewKnownLeader(1)
	leader.Follow(1, 1, time.Now)
	stopping, stop := context.WithCancel(t.Context())
	moving := &transfer{
		leader: leader, patience: time.Hour, stopping: stopping,
		status: func() raft.Status {
			return raft.Status{ID: 1, Role: raft.Leader, Config: consensus.Config{Voters: []consensus.MemberID{1, 2}}}
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	moving.begin = func(consensus.MemberID) { cancel() }
	if err := moving.to(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up was told %v", err)
	}
	moving.begin = func(consensus.MemberID) { stop() }
	if err := moving.to(t.Context(), 2); !errors.Is(err, ErrStopped) {
		t.Errorf("a caller at a member that stops was told %v", err)
	}
}
