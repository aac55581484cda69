package survey

import (
	"context"
	"errors"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Role is what a member is in the cluster at the moment.
type Role string

// The roles.
const (
	Leader   Role = "leader"
	Follower Role = "follower"
	Learner  Role = "learner"
	Seeking  Role = "no leader" // alive, but it knows no leader
	Down     Role = "down"
)

// Seat is a member to ask. Name may be empty.
type Seat struct {
	Name     string
	Endpoint string // host:port of its clients; empty: it never said where it serves clients
	PeerURLs []string
}

// Member is what one member answered.
type Member struct {
	Seat
	ID       uint64
	Cluster  uint64 // that it says it is of
	Role     Role
	Term     uint64
	Index    uint64 // last entry of its log
	Applied  uint64
	Lag      uint64 // entries from its applied state to the end of the furthest log
	Revision int64
	Size     int64 // of the store, in bytes
	Version  string
	Alarms   []string // errors it reports
	Err      error    // why it is down
}

// ErrNoEndpoint is why a member without client URLs is down.
var ErrNoEndpoint = errors.New("survey: not started yet")

// Ask asks all members at once; the context bounds the whole survey.
func Ask(ctx context.Context, client *clientv3.Client, seats []Seat) []Member {
	out := make([]Member, len(seats))
	var all sync.WaitGroup
	for i, seat := range seats {
		all.Go(func() { out[i] = askOne(ctx, client, seat) })
	}
	all.Wait()
	compare(out)
	return out
}

func askOne(ctx context.Context, client *clientv3.Client, seat Seat) Member {
	m := Member{Seat: seat, Role: Down, Err: ErrNoEndpoint}
	if seat.Endpoint == "" {
		return m
	}
	answer, err := client.Status(ctx, seat.Endpoint)
	if err != nil {
		m.Err = err
		return m
	}
	m = Member{
		Seat: seat, ID: answer.Header.GetMemberId(), Cluster: answer.Header.GetClusterId(), Role: Follower,
		Term: answer.RaftTerm, Index: answer.RaftIndex,
		Applied: answer.RaftAppliedIndex, Revision: answer.Header.GetRevision(), Size: answer.DbSize,
		Version: answer.Version, Alarms: slices.Clone(answer.Errors),
	}
	switch {
	case answer.IsLearner:
		m.Role = Learner
	case answer.Leader == 0:
		m.Role = Seeking
	case answer.Leader == m.ID:
		m.Role = Leader
	}
	return m
}

func compare(members []Member) {
	var furthest uint64
	for _, m := range members {
		furthest = max(furthest, m.Index)
	}
	for i := range members {
		if m := &members[i]; m.Role != Down && m.Applied < furthest {
			m.Lag = furthest - m.Applied
		}
	}
}

// LeaderOf returns the leader that most members would name: the one of the highest term. A leader that was cut off
// calls itself leader for a while; its term gives it away.
func LeaderOf(members []Member) (Member, bool) {
	var leader Member
	found := false
	for _, m := range members {
		if m.Role == Leader && (!found || m.Term > leader.Term) {
			leader, found = m, true
		}
	}
	return leader, found
}
