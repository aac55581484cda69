package survey

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
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
	Leads    uint64 // the leader that it names; zero: it knows none
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

// Unlisted is the name of a process that answers at an endpoint that no member of the list has.
const Unlisted = "?"

// Seats are all members that the cluster knows, its id, and the endpoints of the command line that none of them has: another
// process may answer there. A member whose cluster has no leader still answers, from what it knows itself.
func Seats(ctx context.Context, client *clientv3.Client) (cluster uint64, seats []Seat, err error) {
	list, err := client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return 0, nil, err
	}
	for _, m := range list.Members {
		seat := Seat{Name: m.Name, PeerURLs: m.PeerURLs}
		if seat.Name == "" {
			seat.Name = strconv.FormatUint(m.ID, 16)
		}
		if len(m.ClientURLs) > 0 {
			seat.Endpoint = strings.TrimPrefix(strings.TrimPrefix(m.ClientURLs[0], "http://"), "https://")
		}
		seats = append(seats, seat)
	}
	for _, e := range client.Endpoints() {
		if !slices.ContainsFunc(seats, func(s Seat) bool { return s.Endpoint == e }) {
			seats = append(seats, Seat{Name: Unlisted, Endpoint: e})
		}
	}
	return list.Header.GetClusterId(), seats, nil
}

// Listed drops what endpoints add that no member has: other names of members, and those that do not answer.
func Listed(members []Member) []Member {
	known := slices.Clone(members)
	return slices.DeleteFunc(members, func(m Member) bool {
		return m.Name == Unlisted && (m.Role == Down || slices.ContainsFunc(known, func(k Member) bool {
			return k.Name != Unlisted && k.ID == m.ID && k.Cluster == m.Cluster
		}))
	})
}

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
		Leads: answer.Leader, Term: answer.RaftTerm, Index: answer.RaftIndex,
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
