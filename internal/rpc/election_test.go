package rpc_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/quorate/quorate/api/v3electionpb"
)

type elections struct {
	*locks
	client v3electionpb.ElectionClient
}

func newElections(t *testing.T) *elections {
	l := newLocks(t)
	return &elections{l, v3electionpb.NewElectionClient(l.etcd.ActiveConnection())}
}

func (e *elections) campaign(ctx context.Context, lease int64, value string) <-chan *v3electionpb.LeaderKey {
	elected := make(chan *v3electionpb.LeaderKey, 1)
	go func() {
		r, err := e.client.Campaign(ctx, &v3electionpb.CampaignRequest{Name: []byte("n"), Lease: lease, Value: []byte(value)})
		if err != nil {
			close(elected)
			return
		}
		elected <- r.Leader
	}()
	return elected
}

// next returns an observer's next event.
func next(t *testing.T, observer grpc.ServerStreamingClient[v3electionpb.LeaderResponse]) string {
	t.Helper()
	r, err := observer.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s=%s@%d", r.Kv.Key, r.Kv.Value, r.Header.Revision)
}

// Ensure that leaders follow each other in the order of their candidacies, and that observers get the proclamations of each of
// them.
func TestElection_Campaign_order(t *testing.T) {
	e := newElections(t)
	observer, err := e.client.Observe(e.ctx, &v3electionpb.LeaderRequest{Name: []byte("n")})
	if err != nil {
		t.Fatal(err)
	}
	e.awaitMetric(t, `quorate_costly_calls{call="stream"} 2`) // it waits for the first leader
	one := <-e.campaign(e.ctx, e.lease(t), "one")
	second := e.campaign(e.ctx, e.lease(t), "two")
	e.awaitWaiting(t, "1")
	leaving, leave := context.WithCancel(e.ctx)
	third := e.campaign(leaving, e.lease(t), "three")
	e.awaitWaiting(t, "2")
	leave()
	if leader := <-third; leader != nil {
		t.Errorf("who left was elected: %v", leader)
	}
	e.awaitWaiting(t, "1")
	if _, err := e.client.Proclaim(e.ctx, &v3electionpb.ProclaimRequest{Leader: one, Value: []byte("more")}); err != nil {
		t.Fatal(err)
	}
	now, err := e.client.Leader(e.ctx, &v3electionpb.LeaderRequest{Name: []byte("n")})
	if err != nil || string(now.Kv.Key) != string(one.Key) || string(now.Kv.Value) != "more" {
		t.Errorf("the leader is %v, %v", now, err)
	}
	if _, err := e.client.Resign(e.ctx, &v3electionpb.ResignRequest{Leader: one}); err != nil {
		t.Fatal(err)
	}
	two := <-second
	if e.keys(t) != string(two.Key) {
		t.Errorf("the keys are %s, want %s", e.keys(t), two.Key)
	}
	sees := func(want string) {
		if got := next(t, observer); !strings.HasPrefix(got, want) {
			t.Errorf("the observer saw %s, want %s", got, want)
		}
	}
	sees(fmt.Sprintf("%s=one@%d", one.Key, one.Rev))
	sees(fmt.Sprintf("%s=more@", one.Key))
	sees(fmt.Sprintf("%s=two@", two.Key)) // of a leader that follows another one it gets the value at the time of its read
	again := <-e.campaign(e.ctx, two.Lease, "again")
	if again.Rev != two.Rev || string(again.Key) != string(two.Key) {
		t.Errorf("campaigning again gave %v, want %v", again, two)
	}
	sees(fmt.Sprintf("%s=again@", two.Key))
}

// Ensure that a candidate whose lease ended while it waited does not get the answer that it leads.
func TestElection_Campaign_lostWhileWaiting(t *testing.T) {
	e := newElections(t)
	one := <-e.campaign(e.ctx, e.lease(t), "one")
	lost := e.lease(t)
	second := e.campaign(e.ctx, lost, "two")
	e.awaitWaiting(t, "1")
	if _, err := e.etcd.Revoke(e.ctx, clientv3.LeaseID(lost)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.client.Resign(e.ctx, &v3electionpb.ResignRequest{Leader: one}); err != nil {
		t.Fatal(err)
	}
	if leader := <-second; leader != nil {
		t.Errorf("%v leads without a key", leader)
	}
}

// Ensure that candidates with large values, which are kept while they wait, count as several.
func TestElection_Campaign_largeValues(t *testing.T) {
	e := newElections(t)
	<-e.campaign(e.ctx, e.lease(t), "one")
	lease := e.lease(t)
	leaving, leave := context.WithCancel(e.ctx)
	first := e.campaign(leaving, lease, strings.Repeat("v", 1<<20))
	e.awaitWaiting(t, "257")
	second := e.campaign(leaving, lease, strings.Repeat("v", 1<<20))
	e.awaitWaiting(t, "514")
	leave()
	<-first
	<-second
	e.awaitWaiting(t, "0")
}

// Ensure that errors are those of etcd 3.7.1, in text and code, as observed there.
func TestElection_errors(t *testing.T) {
	e := newElections(t)
	lease := e.lease(t)
	_, err := e.client.Leader(e.ctx, &v3electionpb.LeaderRequest{Name: []byte("n")})
	wantStatus(t, "nobody leads", err, codes.Unknown, "election: no leader")
	_, err = e.client.Campaign(e.ctx, &v3electionpb.CampaignRequest{Name: []byte("n"), Lease: 999})
	wantStatus(t, "an unknown lease", err, codes.Unknown, "etcdserver: requested lease not found")
	_, err = e.client.Proclaim(e.ctx, &v3electionpb.ProclaimRequest{})
	wantStatus(t, "proclaim without a leader", err, codes.Unknown, `"leader" field must be provided`)
	_, err = e.client.Resign(e.ctx, &v3electionpb.ResignRequest{})
	wantStatus(t, "resign without a leader", err, codes.Unknown, `"leader" field must be provided`)
	_, err = e.client.Resign(e.ctx, &v3electionpb.ResignRequest{Leader: &v3electionpb.LeaderKey{}})
	wantStatus(t, "resign of nobody", err, codes.Unknown, "etcdserver: key is not provided")
	elected := <-e.campaign(e.ctx, lease, "one")
	former := &v3electionpb.LeaderKey{Name: elected.Name, Key: elected.Key, Rev: elected.Rev - 1, Lease: lease}
	_, err = e.client.Proclaim(e.ctx, &v3electionpb.ProclaimRequest{Leader: former})
	wantStatus(t, "proclaim of a former leader", err, codes.Unknown, "election: not leader")
	if _, err = e.client.Resign(e.ctx, &v3electionpb.ResignRequest{Leader: former}); err != nil || e.keys(t) == "" {
		t.Errorf("resign of a former leader: %v, the keys are %q", err, e.keys(t))
	}
}
