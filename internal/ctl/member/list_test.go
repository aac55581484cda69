package member_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
)

// same compares a whole text, and shows where it differs.
func same(t *testing.T, name, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// Ensure that zones, marks of cordon and what automatic repair found are shown where there are any.
func TestRun_memberList_zonesAndCare(t *testing.T) {
	f := startCluster(t)
	f.cluster.Members = f.cluster.Members[:2]
	f.cluster.Members[1].Cordoned = true
	f.cluster.Alarms = []string{"m9 is of another epoch"}
	f.cluster.Members[1].Zone, f.cluster.Advice = "north", "m2 has been silent for more than 600 s; nothing is done: no standby"
	same(t, "a table", f.run(t, "member", "list").Out, `
cluster 1f · configuration 41.7.0 · joint-early, settled · leader m1 · quorum 2 of 3 · superquorum 3 of 3 · tolerates 0 more failures
automatic repair: m2 has been silent for more than 600 s; nothing is done: no standby
alarm: m9 is of another epoch
ID  NAME  ROLE             STATE   LAG    LAST-CONTACT  PEER-URLS             CLIENT-URLS           ZONE
a1  m1    voter            leader  0      -             http://10.0.4.1:2380  http://10.0.4.1:2379  -
a2  m2    voter, cordoned  silent  18240  7m12s ago     http://10.0.4.2:2380  http://10.0.4.2:2379  north
`[1:])
}

// Ensure that builds and levels are shown, and who holds the level back.
func TestRun_memberList_builds(t *testing.T) {
	f := startCluster(t)
	f.cluster.Level = 1
	f.cluster.Members = append(f.cluster.Members[:2], &quoratepb.Member{Id: 0xa4, Name: "m4", Role: quoratepb.Role_ROLE_JOINING})
	f.cluster.Members[0].Build, f.cluster.Members[0].Level = "1.1.0", 2
	f.cluster.Members[1].Build, f.cluster.Members[1].Level = "1.0.0", 1
	same(t, "a table", f.run(t, "member", "list").Out, `
cluster 1f · configuration 41.7.0 · joint-early, settled · leader m1 · quorum 2 of 3 · superquorum 3 of 3 · tolerates 0 more failures · feature level 1
feature level 1 until all members know the next one: upgrade, start or remove m2, m4
ID  NAME  ROLE     STATE        LAG    LAST-CONTACT  PEER-URLS             CLIENT-URLS           BUILD
a1  m1    voter    leader       0      -             http://10.0.4.1:2380  http://10.0.4.1:2379  1.1.0 (level 2)
a2  m2    voter    silent       18240  7m12s ago     http://10.0.4.2:2380  http://10.0.4.2:2379  1.0.0 (level 1)
a4  m4    joining  not started  -      never         -                     -                     -
`[1:])
}

func TestRun_memberList(t *testing.T) {
	f := startCluster(t)
	f.cluster.Members = append(f.cluster.Members,
		&quoratepb.Member{Id: 0xa4, Name: "m4", Role: quoratepb.Role_ROLE_JOINING, PeerUrls: []string{"http://10.0.4.9:2380"}},
		&quoratepb.Member{Id: 0xa5, Name: "m5", Role: quoratepb.Role_ROLE_LEARNER, Started: true, Active: true, Lag: 940,
			State: "snapshot", SnapshotSentBytes: 71, SnapshotTotalBytes: 100})
	got := f.run(t, "member", "list")
	same(t, "a table", got.Out, `
cluster 1f · configuration 41.7.0 · joint-early, settled · leader m1 · quorum 2 of 3 · superquorum 3 of 3 · tolerates 0 more failures
ID  NAME  ROLE     STATE         LAG    LAST-CONTACT  PEER-URLS             CLIENT-URLS
a1  m1    voter    leader        0      -             http://10.0.4.1:2380  http://10.0.4.1:2379
a2  m2    voter    silent        18240  7m12s ago     http://10.0.4.2:2380  http://10.0.4.2:2379
a3  m3    voter    replicate     2      now           http://10.0.4.3:2380  http://10.0.4.3:2379
a4  m4    joining  not started   -      never         http://10.0.4.9:2380  -
a5  m5    learner  snapshot 71%  940    now           -                     -
`[1:])
	got = f.run(t, "member", "list", "-o", "json")
	var cluster struct {
		ClusterID string `json:"cluster_id"`
		Members   []struct {
			ID   string
			Role string
			Lag  string
		}
	}
	if err := json.Unmarshal([]byte(got.Out), &cluster); err != nil || strings.Count(got.Out, "\n") != 1 {
		t.Fatalf("got %q, %v; want one line of JSON", got.Out, err)
	}
	if cluster.ClusterID != "31" || len(cluster.Members) != 5 || cluster.Members[3].Role != "ROLE_JOINING" {
		t.Errorf("got %+v", cluster)
	}
	got = f.run(t, "member", "list", "-o", "yaml")
	if !strings.Contains(got.Out, "cluster_id: \"31\"\nconfig:\n  index: \"41\"\n") {
		t.Errorf("got %q", got.Out)
	}
}

// Ensure that a joint configuration, lost writes and a missing leader are told in the first line.
func TestRun_memberList_trouble(t *testing.T) {
	f := startCluster(t)
	f.cluster.Joint, f.cluster.Settled, f.cluster.Leader = true, false, 0
	f.cluster.Strength = &quoratepb.Strength{Voters: 4, Quorum: 3, Outgoing: 3, OutgoingQuorum: 2, Superquorum: 4, Tolerates: -2}
	line, _, _ := strings.Cut(f.run(t, "member", "list").Out, "\n")
	same(t, "in the middle of a change", line, "cluster 1f · configuration 41.7.0 · joint-early, joint · no leader · "+
		"quorum 3 of 4 and 2 of 3 · superquorum 4 of 4 · writes have stopped: 2 more voters must be up")
}

// Ensure that without a leader the members are listed all the same, as one of them knows them, and the status says so.
func TestRun_memberList_noLeader(t *testing.T) {
	f := startCluster(t)
	for range 9 {
		f.refusals = append(f.refusals, status.Error(codes.Unavailable, "etcdserver: no leader"))
	}
	f.run(t, "member", "list", "--timeout=300ms").Want(t, command.StatusUnreachable,
		"ID  NAME  ROLE   STATE        LAG  LAST-CONTACT  PEER-URLS  CLIENT-URLS\n"+
			"a1  m1    voter  not started  -    -             -          -\n", "within 300ms: no leader")
}
