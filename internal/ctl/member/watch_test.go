package member_test

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

func TestRun_memberWatch(t *testing.T) {
	f := startCluster(t)
	started := f.jobEvent("running", "start", 5_000)
	joint := proto.CloneOf(f.cluster)
	joint.Joint, joint.Settled, joint.Config.Index = true, false, 43
	joint.Members[1].Role = quoratepb.Role_ROLE_OUTGOING
	moving := proto.CloneOf(f.cluster)
	moving.Members[2].SnapshotSentBytes, moving.Members[2].SnapshotTotalBytes = 1<<20, 2<<20
	led := proto.CloneOf(f.cluster)
	led.Leader, led.Term = 0xa3, 8
	f.streams = []fakeStream{
		{[]*quoratepb.Event{stateOf(started)}, status.Error(codes.Unavailable, "stopping")},
		{[]*quoratepb.Event{started,
			{Kind: quoratepb.Event_KIND_CONFIG, Cluster: joint}, {Kind: quoratepb.Event_KIND_LEADER, Cluster: led},
			{Kind: quoratepb.Event_KIND_PROGRESS, Cluster: moving}, {Kind: quoratepb.Event_KIND_LEADER}}, nil},
	}
	lines := ctltest.Lines(t, f.address, 6, "member", "watch")
	var got []string
	for line := range strings.Lines(lines) {
		got = append(got, line[len("15:04:05 "):])
	}
	same(t, "a line for each event", strings.Join(got, ""), `
state     cluster 1f · configuration 41.7.0 · joint-early, settled · leader m1 · quorum 2 of 3 · superquorum 3 of 3 · `[1:]+
		`tolerates 0 more failures · voter m1, m2, m3 · replace job 3f2a running at start
job       replace job 3f2a running at start
config    configuration 43.7.0, joint-early, joint · voter m1, m3; outgoing m2
leader    m3 leads in term 8
progress  m2 silent for 7m12s; m3 snapshot 1.0 MiB of 2.0 MiB at 0 B/s
leader    nobody leads
`)
	lines = ctltest.Lines(t, f.address, 2, "member", "watch", "-o", "json", "--interval=1s")
	for line := range strings.Lines(lines) {
		if !json.Valid([]byte(line)) {
			t.Errorf("got %q, want JSON", line)
		}
	}
	if lines = ctltest.Lines(t, f.address, 2, "member", "watch", "-o", "yaml"); !strings.HasPrefix(lines, "---\ncluster:\n") {
		t.Errorf("got %q, want a document of YAML", lines)
	}
}
