package process_test

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
)

// TestNative_throughAFollower watches and changes three members through one that follows: it sees the leader die, and the
// dead member go, by a job that the next leader drives.
func TestNative_throughAFollower(t *testing.T) {
	t.Parallel()
	e := startElastic(t)
	e.grow("m2")
	e.grow("m3")
	var leader *node
	var client *clientv3.Client
	var native quoratepb.MembershipClient
	var dead uint64
	until(t, "a follower describes a leader and three members, one of which may fail", func(ctx context.Context) bool {
		leader = e.leader()
		dead = e.status(leader).Header.MemberId
		client = dialAlone(t, e.others(leader)[0])
		native = quoratepb.NewMembershipClient(client.ActiveConnection())
		described, err := native.Describe(ctx, &quoratepb.DescribeRequest{})
		cluster := described.GetCluster()
		return err == nil && cluster.Leader == dead && len(cluster.Members) == 3 && cluster.Strength.Tolerates == 1
	})
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	events, err := native.Watch(ctx, &quoratepb.WatchRequest{IntervalMs: 100})
	if err != nil {
		t.Fatal(err)
	}
	sees := func(what string, met func(*quoratepb.Event) bool) {
		t.Helper()
		for {
			event, err := events.Recv()
			if err != nil {
				t.Fatalf("%s: not seen: %v", what, err)
			}
			if met(event) {
				return
			}
		}
	}
	sees("the state", func(event *quoratepb.Event) bool { return event.Kind == quoratepb.Event_KIND_STATE })
	leader.kill()
	sees("another leader", func(event *quoratepb.Event) bool {
		return event.Kind == quoratepb.Event_KIND_LEADER && event.Cluster.Leader != dead && event.Cluster.Leader != 0
	})
	sees("that the dead member is silent", func(event *quoratepb.Event) bool {
		for _, m := range event.Cluster.Members {
			if m.Id == dead {
				return !m.Active && m.SilentMs > 0
			}
		}
		return false
	})
	job, err := native.Start(ctx, &quoratepb.StartRequest{Spec: &quoratepb.ChangeSpec{Remove: []uint64{dead}}})
	if err != nil {
		t.Fatal(err)
	}
	config := false // told before the job is done, or with it
	sees("the job done", func(event *quoratepb.Event) bool {
		config = config || event.Kind == quoratepb.Event_KIND_CONFIG
		for _, told := range event.Jobs {
			if told.Id == job.Id && told.State == "failed" {
				t.Fatalf("the job failed: %v", told)
			}
			if told.Id == job.Id && told.State == "done" {
				return true
			}
		}
		return false
	})
	after, err := native.Describe(ctx, &quoratepb.DescribeRequest{})
	if err != nil || len(after.Cluster.Members) != 2 || !after.Cluster.Settled || !config {
		t.Errorf("afterwards: got %v, %v (a configuration was told: %v); want two members, settled", after, err, config)
	}
	if _, err := client.Put(ctx, "k", "v"); err != nil {
		t.Errorf("a write by the two: %v", err)
	}
}
