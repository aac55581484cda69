package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/api/quoratepb"
)

// fakeWays lead to members that come and go.
type fakeWays struct {
	mu         sync.Mutex
	endpoints  []string
	up         map[string]uint64 // endpoint -> member
	cluster    uint64
	leaderless bool
	asked      []string
	kept       []string
}

var errNobody = errors.New("nobody is there")

func (w *fakeWays) Endpoints() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.endpoints
}

func (w *fakeWays) SetEndpoints(endpoints ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endpoints = endpoints
}

func (w *fakeWays) Opened() []string { return nil }

func (w *fakeWays) Keep(endpoints []string) { w.kept = endpoints }

func (w *fakeWays) List(ctx context.Context, endpoint string, linearizable bool) (*pb.MemberListResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, endpoint)
	if w.up[endpoint] == 0 || linearizable && w.leaderless {
		return nil, errNobody
	}
	answer := &pb.MemberListResponse{Header: &pb.ResponseHeader{ClusterId: w.cluster, MemberId: w.up[endpoint]}}
	for url, id := range w.up {
		answer.Members = append(answer.Members, &pb.Member{ID: id, ClientURLs: []string{url}})
	}
	slices.SortFunc(answer.Members, func(a, b *pb.Member) int { return int(a.ID) - int(b.ID) })
	return answer, nil
}

func (w *fakeWays) come(ids ...uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up, w.cluster = map[string]uint64{}, 1
	for _, id := range ids {
		w.up[fmt.Sprint("m", id)] = id
	}
}

// Ensure that a client that was given one member finds the others when all are replaced, and reads from those.
func TestFollower_refresh(t *testing.T) {
	ways := &fakeWays{endpoints: []string{"m1"}}
	f := newFollower()
	f.lead(ways)
	voters := []uint64{1, 2, 3}
	ways.come(voters...)
	f.refresh(context.Background())
	if got := ways.Endpoints(); !slices.Equal(got, []string{"m1"}) {
		t.Errorf("nothing happened, and reads go to %v", got)
	}
	for next := uint64(4); next <= 6; next++ {
		gone := voters[0]
		voters = append(voters[1:], next)
		ways.come(voters...)
		f.lost()
		f.wait()
		f.refresh(context.Background())
		if got := ways.Endpoints(); slices.Contains(got, fmt.Sprint("m", gone)) || !slices.Contains(got, fmt.Sprint("m", next)) {
			t.Fatalf("the members are %v, and reads go to %v", voters, got)
		}
		first, others := f.endpoints()
		if !slices.Contains(append(first, others...), fmt.Sprint("m", next)) {
			t.Errorf("the members are %v, and writes go to %v, then %v", voters, first, others)
		}
	}
	if !slices.Equal(ways.Endpoints(), []string{"m4", "m5", "m6"}) || slices.Contains(ways.kept, "m2") {
		t.Errorf("reads go to %v, connections are kept to %v", ways.Endpoints(), ways.kept)
	}
}

// Ensure that a status which names a new configuration is reason enough to list, and that one without news is not.
func TestFollower_note(t *testing.T) {
	ways := &fakeWays{endpoints: []string{"m1"}}
	ways.come(1, 2)
	f := newFollower()
	f.lead(ways)
	say := func(index uint64, voters ...uint64) {
		t.Helper()
		if err := f.note("m1", &quoratepb.MemberStatus{Cluster: 1, Member: 1, Leader: 1, Voters: voters,
			TermConfig: &quoratepb.TermConfig{Term: 1, ConfigTerm: 1, ConfigIndex: index}}); err != nil {
			t.Fatal(err)
		}
	}
	due := func() bool {
		select {
		case <-f.wake:
			return true
		default:
			return false
		}
	}
	say(1, 1, 2)
	if !due() {
		t.Error("nothing is known, and nobody is asked")
	}
	f.refresh(context.Background())
	if say(1, 1, 2); due() {
		t.Error("nothing is new, and somebody is asked")
	}
	if say(9, 1, 2, 3); !due() {
		t.Error("a voter is new, and nobody is asked where it is")
	}
}

// Ensure that other endpoints of the user replace those that the client found, and that a link elsewhere is given up.
func TestFollower_given(t *testing.T) {
	ways := &fakeWays{endpoints: []string{"m1"}}
	ways.come(2, 3)
	f := newFollower()
	f.lead(ways)
	ways.come(1, 2, 3)
	f.refresh(context.Background())
	ways.come(2, 3)
	f.lost()
	f.wait()
	f.refresh(context.Background())
	if got := ways.Endpoints(); !slices.Equal(got, []string{"m2", "m3"}) || f.deserted("m3") {
		t.Errorf("reads go to %v", got)
	}
	ways.SetEndpoints("http://m2")
	if f.deserted("m2") {
		t.Error("the user gave m2")
	}
	ways.SetEndpoints("m3")
	if !f.deserted("m2") {
		t.Error("the user gave m3 alone, and the client writes through m2")
	}
	f.refresh(context.Background())
	if got := ways.Endpoints(); !slices.Equal(got, []string{"m3"}) {
		t.Errorf("the user gave m3, and reads go to %v", got)
	}
}

// Ensure that a cluster without a leader, which may be in the middle of anything, adds addresses and takes none away; and that
// members of another cluster are not believed.
func TestFollower_list_unconfirmed(t *testing.T) {
	ways := &fakeWays{endpoints: []string{"m1", "m2"}}
	ways.come(1, 2, 3)
	f := newFollower()
	f.lead(ways)
	f.refresh(context.Background())
	ways.come(1, 4)
	ways.leaderless = true
	f.lost()
	f.wait()
	f.refresh(context.Background())
	if got := ways.Endpoints(); !slices.Equal(got, []string{"m1", "m2"}) || len(f.toMember(4)) == 0 {
		t.Errorf("reads go to %v, and 4 is at %v", got, f.toMember(4))
	}
	ways.leaderless, ways.cluster = false, 2
	f.lost()
	f.wait()
	f.refresh(context.Background())
	if f.book.Wait(time.Now()) > time.Minute || f.book.Cluster() != 1 {
		t.Error("a foreign cluster was believed")
	}
}
