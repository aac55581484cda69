package member

import (
	"context"
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/consensus/raft"
)

// Ensure that only a running leader returns a view.
func TestLeaderView_view(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	role := raft.Follower
	views := leaderView{
		awaitStart: func(context.Context) error { return nil },
		status:     func() raft.Status { return raft.Status{Role: role} }, stopping: t.Context(),
	}
	if _, _, err := views.view(t.Context()); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a follower: %v", err)
	}
	role, views.stopping = raft.Leader, stopped
	if _, _, err := views.view(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("a leader that has stopped: %v", err)
	}
}
