package ctl_test

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl"
)

// same compares a whole text, and shows where it differs.
func same(t *testing.T, name, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// Ensure that zones, marks of cordon and what automatic care found are shown where there are any.
func TestRun_memberList_zonesAndCare(t *testing.T) {
	f := startCluster(t)
	f.cluster.Members = f.cluster.Members[:2]
	f.cluster.Members[1].Cordoned = true
	f.cluster.Alarms = []string{"m9 is of another epoch"}
	f.cluster.Members[1].Zone, f.cluster.Advice = "north", "m2 has been silent for more than 600 s; nothing is done: no standby"
	same(t, "a table", f.run(t, "member", "list").out, `
cluster 1f · configuration 41.7.0 · joint-early, settled · leader m1 · quorum 2 of 3 · superquorum 3 of 3 · tolerates 0 more failures
automatic care: m2 has been silent for more than 600 s; nothing is done: no standby
alarm: m9 is of another epoch
ID  NAME  ROLE             STATE   LAG    LAST-CONTACT  PEER-URLS             CLIENT-URLS           ZONE
a1  m1    voter            leader  0      -             http://10.0.4.1:2380  http://10.0.4.1:2379  -
a2  m2    voter, cordoned  silent  18240  7m12s ago     http://10.0.4.2:2380  http://10.0.4.2:2379  north
`[1:])
}

func TestRun_memberList(t *testing.T) {
	f := startCluster(t)
	f.cluster.Members = append(f.cluster.Members,
		&quoratepb.Member{Id: 0xa4, Name: "m4", Role: quoratepb.Role_ROLE_JOINING, PeerUrls: []string{"http://10.0.4.9:2380"}},
		&quoratepb.Member{Id: 0xa5, Name: "m5", Role: quoratepb.Role_ROLE_LEARNER, Started: true, Active: true, Lag: 940,
			State: "snapshot", SnapshotSentBytes: 71, SnapshotTotalBytes: 100})
	got := f.run(t, "member", "list")
	same(t, "a table", got.out, `
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
	if err := json.Unmarshal([]byte(got.out), &cluster); err != nil || strings.Count(got.out, "\n") != 1 {
		t.Fatalf("got %q, %v; want one line of JSON", got.out, err)
	}
	if cluster.ClusterID != "31" || len(cluster.Members) != 5 || cluster.Members[3].Role != "ROLE_JOINING" {
		t.Errorf("got %+v", cluster)
	}
	got = f.run(t, "member", "list", "-o", "yaml")
	if !strings.Contains(got.out, "cluster_id: \"31\"\nconfig:\n  index: \"41\"\n") {
		t.Errorf("got %q", got.out)
	}
}

// Ensure that a joint configuration, lost writes and a missing leader are told in the first line.
func TestRun_memberList_trouble(t *testing.T) {
	f := startCluster(t)
	f.cluster.Joint, f.cluster.Settled, f.cluster.Leader = true, false, 0
	f.cluster.Strength = &quoratepb.Strength{Voters: 4, Quorum: 3, Outgoing: 3, OutgoingQuorum: 2, Superquorum: 4, Tolerates: -2}
	line, _, _ := strings.Cut(f.run(t, "member", "list").out, "\n")
	same(t, "in the middle of a change", line, "cluster 1f · configuration 41.7.0 · joint-early, joint · no leader · "+
		"quorum 3 of 4 and 2 of 3 · superquorum 4 of 4 · writes have stopped: 2 more voters must be up")
}

// Ensure that without a leader the members are listed all the same, as one of them knows them, and the status says so.
func TestRun_memberList_noLeader(t *testing.T) {
	f := startCluster(t)
	for range 9 {
		f.refusals = append(f.refusals, status.Error(codes.Unavailable, "etcdserver: no leader"))
	}
	f.run(t, "member", "list", "--timeout=300ms").want(t, ctl.StatusUnreachable,
		"ID  NAME  ROLE   STATE        LAG  LAST-CONTACT  PEER-URLS  CLIENT-URLS\n"+
			"a1  m1    voter  not started  -    -             -          -\n", "within 300ms: no leader")
}

const planText = `
PLAN  cluster 1f · configuration 41.7.0 · leader m1 · protocol joint-early · 3 voters, 1 down (m2, silent for 7m12s)
                                              QUORUM             SUPERQUORUM  TOLERATES
  now                                         2 of 3             3 of 3       0 failures
  1 add m4 as a learner                       2 of 3             3 of 3       0 failures
  2 let m4 catch up                           2 of 3             3 of 3       0 failures
      stream 3.1 GiB, then the log
  3 swap m2 for m4 in one joint step  during  2 of 3 and 2 of 3  3 of 3       0 failures
                                      after   2 of 3             3 of 3       1 failure
warning: somebody must start m4
`

func TestRun_memberPlan(t *testing.T) {
	f := startCluster(t)
	args := []string{"member", "plan", "--add", "m4=http://10.0.4.9:2380", "--remove", "m2"}
	got := f.run(t, args...)
	same(t, "a plan", got.out, planText[1:])
	if got.status != 0 || got.err != "" || len(f.started) > 0 {
		t.Errorf("got status %d, %q, %d jobs; want a plan and no more", got.status, got.err, len(f.started))
	}
	f.plan.Blockers = []string{"m3 has not caught up: wait"}
	got = f.run(t, args...)
	same(t, "a plan that is blocked", got.out, strings.TrimSuffix(planText[1:], "warning: somebody must start m4\n")+
		"blocked: m3 has not caught up: wait\n")
	if got.status != ctl.StatusRefused || got.err != "quorate: the plan is blocked; nothing was changed\n" {
		t.Errorf("blocked: got status %d, %q", got.status, got.err)
	}
	got = f.run(t, append(args, "-o", "json")...)
	if got.status != ctl.StatusRefused || !strings.Contains(got.out, `"blockers":["m3 has not caught up: wait"]`) {
		t.Errorf("blocked, as JSON: got status %d, %q", got.status, got.out)
	}
	f.plan = &quoratepb.PlanResponse{Done: true}
	f.run(t, "member", "remove", "m2", "--yes").want(t, 0, "nothing to do: the members are as asked\n", "")
}

// Ensure that the words of each command become the specification that they mean.
func TestRun_memberSpec(t *testing.T) {
	f := startCluster(t)
	f.cluster.Members = append(f.cluster.Members, &quoratepb.Member{Id: 0xa5, Name: "m5", Role: quoratepb.Role_ROLE_LEARNER})
	newcomer := &quoratepb.Newcomer{Name: "m4", PeerUrls: []string{"http://a:1", "http://b:1"}}
	learner := &quoratepb.Newcomer{Name: "m6", PeerUrls: []string{"http://c:1"}, Learner: true}
	for _, tc := range []struct {
		line string
		want *quoratepb.ChangeSpec
	}{
		{"plan --add m4=http://b:1,http://a:1 --add-learner m6=http://c:1 --remove m1,A2 --remove 163 --protocol joint",
			&quoratepb.ChangeSpec{Add: []*quoratepb.Newcomer{newcomer, learner}, Remove: []uint64{0xa1, 0xa2, 0xa3}, Protocol: "joint"}},
		{"change --dry-run --promote m5 --demote m2 --update m1=http://a:1", &quoratepb.ChangeSpec{Promote: []uint64{0xa5},
			Demote: []uint64{0xa2}, Update: []*quoratepb.NewURLs{{Id: 0xa1, PeerUrls: []string{"http://a:1"}}}}},
		{"replace m2 --dry-run --name m4 --peer-urls http://a:1,http://b:1",
			&quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{0xa2}, Add: []*quoratepb.Newcomer{newcomer}}},
		{"replace m2 --dry-run --with m5", &quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{0xa2}, Promote: []uint64{0xa5}}},
		{"replace m5 --dry-run --name m6 --peer-urls http://c:1",
			&quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{0xa5}, Add: []*quoratepb.Newcomer{learner}}},
		{"add m4 --dry-run --peer-urls http://a:1 --peer-urls http://b:1", &quoratepb.ChangeSpec{Add: []*quoratepb.Newcomer{newcomer}}},
		{"add http://c:1 --dry-run --learner",
			&quoratepb.ChangeSpec{Add: []*quoratepb.Newcomer{{PeerUrls: []string{"http://c:1"}, Learner: true}}}},
		{"remove m1 m2 m1 --dry-run", &quoratepb.ChangeSpec{Remove: []uint64{0xa1, 0xa2}}},
		{"promote m5 --dry-run --protocol single", &quoratepb.ChangeSpec{Promote: []uint64{0xa5}, Protocol: "single"}},
		{"demote m3 --dry-run", &quoratepb.ChangeSpec{Demote: []uint64{0xa3}}},
		{"update m3 --peer-urls http://c:1 --dry-run",
			&quoratepb.ChangeSpec{Update: []*quoratepb.NewURLs{{Id: 0xa3, PeerUrls: []string{"http://c:1"}}}}},
		{"change --dry-run --cordon m1,m2 --uncordon m3",
			&quoratepb.ChangeSpec{Cordon: []uint64{0xa1, 0xa2}, Uncordon: []uint64{0xa3}}},
		{"cordon m1 m5 --dry-run", &quoratepb.ChangeSpec{Cordon: []uint64{0xa1, 0xa5}}},
		{"uncordon m1 --dry-run", &quoratepb.ChangeSpec{Uncordon: []uint64{0xa1}}},
		{"drain m1 --dry-run", &quoratepb.ChangeSpec{Kind: "drain", Drain: []uint64{0xa1}}},
	} {
		f.planned = nil
		if got := f.run(t, append([]string{"member"}, strings.Fields(tc.line)...)...); got.status != 0 {
			t.Errorf("%s: got status %d, %s", tc.line, got.status, got.err)
			continue
		}
		tc.want.Expected = f.cluster.Config
		if tc.want.Kind == "" {
			tc.want.Kind = "change"
		}
		if verb, _, _ := strings.Cut(tc.line, " "); tc.want.Protocol == "" &&
			!slices.Contains([]string{"drain", "update", "cordon", "uncordon"}, verb) {
			tc.want.Protocol = "auto"
		}
		if diff := cmp.Diff(tc.want, f.planned[0], protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.line, diff)
		}
	}
}

func TestRun_memberUsage(t *testing.T) {
	f := startCluster(t)
	for _, tc := range []struct {
		line, want string
		status     int
	}{
		{"change --remove m2", "there is no terminal to ask on: add --yes, or --dry-run to see the plan", 2},
		{"change --yes", "change what? See --add", 2},
		{"change --add m4 --yes", "--add m4: write NAME=URL[,URL]", 2},
		{"change --add m4=10.0.4.9:2380 --yes", `--add: "10.0.4.9:2380" is not a URL`, 2},
		{"change --add m4= --yes", "a member needs a peer URL", 2},
		{"change --remove m2 --yes --protocol paxos",
			`--protocol "paxos": choose auto, single, joint, joint-early, activate or apply`, 2},
		{"plan --remove m2 --yes", "unknown flag: --yes", 2},
		{"plan --remove m2 -o text", `--output "text": choose table, json or yaml`, 2},
		{"change --remove m9 --yes", `no member is called "m9"; there are a1 (m1), a2 (m2), a3 (m3)`, 1},
		{"replace m2 --yes", "replace m2 by whom?", 2},
		{"replace m2 --with m3 --name m4 --yes", "--with names a member that is there already", 2},
		{"replace m2 --with m2 --yes", "m2 cannot take its own place", 1},
		{"replace --yes", "write: quorate member replace OLD", 2},
		{"add m4 --yes", "say where m4 will be reached", 2},
		{"add m4 m5 --peer-urls http://a:1 --yes", "add takes one NAME", 2},
		{"add http://a:1 --peer-urls http://a:1 --yes", "write: quorate member add NAME", 2},
		{"update m1 --yes", "a member needs a peer URL", 2},
		{"jobs show 9", `the cluster remembers no job "9"`, 1},
		{"jobs stop", `member jobs has no "stop"; did you mean show?`, 2},
		{"watch --interval -1s", "choose up to an hour", 2},
	} {
		f.run(t, append([]string{"member"}, strings.Fields(tc.line)...)...).want(t, tc.status, "", tc.want)
	}
	if len(f.started) > 0 {
		t.Errorf("got %d jobs, want none", len(f.started))
	}
}

// Ensure that nothing happens until a person says yes, and that a yes starts the job of that very plan.
func TestRun_memberChange_question(t *testing.T) {
	f := startCluster(t)
	f.attended(t, "n\n", "member", "remove", "m2").want(t, ctl.StatusRefused, planText[1:],
		"Proceed? [y/N] quorate: nothing was changed")
	f.attended(t, "", "member", "remove", "m2").want(t, ctl.StatusRefused, planText[1:], "nothing was changed")
	if len(f.started) > 0 {
		t.Fatalf("got %d jobs, want none", len(f.started))
	}
	f.attended(t, "Yes\n", "member", "remove", "m2", "--detach").want(t, 0,
		planText[1:]+"job 3f2a is queued; see `quorate member jobs watch 3f2a`\n", "Proceed? [y/N] ")
	if len(f.started) != 1 || f.started[0].RequestId == 0 || !proto.Equal(f.started[0].Spec.Expected, f.plan.Config) {
		t.Errorf("got %v, want one job with a number that expects configuration 41.7.0", f.started)
	}
	got := f.attended(t, "y\n", "member", "remove", "m2", "--detach", "-o", "json")
	if !strings.HasPrefix(got.out, `{"id":"16170",`) || !strings.HasPrefix(got.err, planText[1:]) {
		t.Errorf("as JSON: got %q, errors %q; want the job, and the plan beside it", got.out, got.err)
	}
}

// Ensure that a command that is given again means the member that its job has removed, and not one that bears its name now.
func TestRun_memberChange_removedBefore(t *testing.T) {
	f := startCluster(t)
	removed := func(id uint64, name string) *quoratepb.Job {
		return &quoratepb.Job{Spec: &quoratepb.ChangeSpec{Remove: []uint64{id}}, State: "done",
			Names: []*quoratepb.NamedMember{{Id: id, Name: name}}}
	}
	f.jobs = []*quoratepb.Job{removed(0xb8, "m9"), removed(0xb1, "m1"), removed(0xb9, "m9")}
	f.plan = &quoratepb.PlanResponse{Config: f.cluster.Config, Done: true}
	for word, want := range map[string]uint64{"m9": 0xb9, "m1": 0xa1, "b1": 0xb1, "b8": 0xb8, "m8": 0} {
		f.planned = nil
		got := f.run(t, "member", "remove", word, "--yes")
		switch {
		case want == 0 && (got.status != ctl.StatusRefused || !strings.Contains(got.err, "no member is called")):
			t.Errorf("%s: got %+v", word, got)
		case want != 0 && (len(f.planned) != 1 || f.planned[0].Remove[0] != want || got.out != "nothing to do: the members are as asked\n"):
			t.Errorf("%s: got %+v, planned %v, want %x", word, got, f.planned, want)
		}
	}
}

// Ensure that a plan whose cluster has changed is refused, and that a leader that is missing for a moment is waited for.
func TestRun_memberChange_refusals(t *testing.T) {
	f := startCluster(t)
	f.refusals = []error{nil, stale(t)}
	f.run(t, "member", "remove", "m2", "--yes", "--detach").want(t, ctl.StatusRefused, planText[1:],
		"the members have changed since the plan was made: configuration 43.8.0 is in force now; nothing was changed, plan again")
	f.started = nil
	f.refusals = []error{status.Error(codes.Unavailable, "etcdserver: no leader"), nil, status.Error(codes.Unavailable, "x")}
	f.run(t, "member", "remove", "m2", "--yes", "--detach").want(t, 0,
		planText[1:]+"job 3f2a is queued; see `quorate member jobs watch 3f2a`\n", "")
	if len(f.started) != 2 || f.started[0].RequestId != f.started[1].RequestId {
		t.Errorf("got %v, want the same request twice", f.started)
	}
	for range 9 {
		f.refusals = append(f.refusals, status.Error(codes.Unavailable, "etcdserver: no leader"))
	}
	f.run(t, "member", "remove", "m2", "--yes", "--timeout=300ms").want(t, ctl.StatusUnreachable, "",
		"the cluster did not do it within 300ms: no leader")
}

// played is a stream of a job that ends well.
func (f *fakeCluster) played() []*quoratepb.Event {
	return []*quoratepb.Event{stateOf(f.jobEvent("running", "join", 0)), f.jobEvent("running", "start", 1_000),
		f.jobEvent("running", "swap", 9_000), f.jobEvent("done", "swap", 12_000)}
}

const replaceText = `queued
[1/3] join
[2/3] start
start it on its machine: quorate --name m4 --join http://10.0.4.1:2380 --listen-peer-urls http://10.0.4.9:2380 ` +
	`--initial-advertise-peer-urls http://10.0.4.9:2380, with your flags for data, clients and TLS
[3/3] swap
done in 12 s · configuration 44.7.1 · may be switched off: m2
`

func TestRun_memberReplace(t *testing.T) {
	f := startCluster(t)
	f.streams = []fakeStream{{events: f.played()}}
	args := []string{"member", "replace", "m2", "--name", "m4", "--peer-urls", "http://10.0.4.9:2380", "--yes"}
	got := f.run(t, args...)
	same(t, "lines", got.out, planText[1:]+replaceText)
	if got.status != 0 || got.err != "" {
		t.Errorf("got status %d, %q", got.status, got.err)
	}
	got = f.run(t, append(args, "-o", "yaml")...)
	if got.status != 0 || !strings.Contains(got.out, "\nstate: done\n") || !strings.Contains(got.err, "[2/3] start\n") {
		t.Errorf("as YAML: got status %d, %q, %q; want the job, and its progress beside it", got.status, got.out, got.err)
	}
}

// Ensure that a job draws one block in place on a terminal, and that what is to be copied stays above it.
func TestRun_memberReplace_terminal(t *testing.T) {
	f := startCluster(t)
	f.streams = []fakeStream{{events: f.played()}}
	got := runFor(t, t.Context(), ctl.Streams{Environ: []string{"QUORATE_ENDPOINTS=" + f.address}, Terminal: true}, "",
		"member", "replace", "m2", "--name", "m4", "--peer-urls", "http://10.0.4.9:2380", "--yes")
	frames := strings.Split(got.out, "\x1b[4A")
	last := strings.NewReplacer("\x1b[K", "", "\x1b[J", "").Replace(frames[len(frames)-1])
	for _, part := range []string{"replace job 3f2a · done in 12 s\n[1/3] join   done in ", "\n[3/3] swap   done in ",
		"\ndone in 12 s · configuration 44.7.1"} {
		if !strings.Contains(last, part) {
			t.Errorf("the last frame lacks %q:\n%s", part, last)
		}
	}
	if !strings.Contains(got.out, "start it on its machine: quorate --name m4 --join http://10.0.4.1:2380") {
		t.Errorf("the command to start m4 is missing:\n%s", got.out)
	}
}

// Ensure that every other end of a job is told, with the status for it.
func TestRun_memberJobs_ends(t *testing.T) {
	f := startCluster(t)
	f.jobs = []*quoratepb.Job{f.job}
	for _, tc := range []struct {
		name, command, state string
		status               int
		out, err             string
	}{
		{"it fails", "watch", "failed", ctl.StatusRefused, "queued\n", "job 3f2a failed: m4 was never heard"},
		{"somebody cancels it", "watch", "cancelled", ctl.StatusRefused, "queued\n", "job 3f2a cancelled: m4 was never heard"},
		{"we cancel it", "cancel", "cancelled", 0, "queued\ncancelled: m4 was never heard\n", ""},
		{"it is too late", "cancel", "done", ctl.StatusRefused, "queued\n",
			"the job could not be cancelled any more: it is done in 12 s"},
		{"it is done", "watch", "done", 0,
			"queued\ndone in 12 s · configuration 44.7.1 · may be switched off: m2\n", ""},
	} {
		f.streams = []fakeStream{{events: []*quoratepb.Event{stateOf(f.jobEvent(tc.state, "swap", 12_000))}}}
		t.Log(tc.name)
		f.run(t, "member", "jobs", tc.command, "3f2a").want(t, tc.status, tc.out, tc.err)
	}
	undone := f.jobEvent("done", "swap", 12_000)
	undone.Jobs[0].Undo = "quorate member remove m4"
	f.streams = []fakeStream{{events: []*quoratepb.Event{stateOf(undone)}}}
	f.run(t, "member", "jobs", "watch", "3f2a").want(t, 0, "queued\ndone in 12 s · configuration 44.7.1 · may be switched "+
		"off: m2\nundo: quorate member remove m4\n", "")
	f.run(t, "member", "jobs", "cancel", "16170", "--detach").want(t, 0,
		"job 3f2a is queued; see `quorate member jobs watch 3f2a`\n", "")
	f.streams = []fakeStream{{events: []*quoratepb.Event{{Kind: quoratepb.Event_KIND_STATE, Cluster: f.cluster}}}}
	f.run(t, "member", "jobs", "watch", "3f2a", "--timeout=100ms").want(t, ctl.StatusRefused, "queued\n",
		"the cluster remembers no job 3f2a")
}

// Ensure that jobs are told without a leader too, and that a time that is none is refused.
func TestRun_memberJobs_noLeader(t *testing.T) {
	f := startCluster(t)
	f.jobs = []*quoratepb.Job{{Id: 0x3f2a, Spec: f.job.Spec, State: "running", Phase: "start",
		Names: []*quoratepb.NamedMember{{Id: 0xa2, Name: "m2"}}}}
	for range 9 {
		f.refusals = append(f.refusals, status.Error(codes.Unavailable, "etcdserver: no leader"))
	}
	got := f.run(t, "member", "jobs", "--timeout=300ms")
	if got.status != 0 || !strings.Contains(got.out, "add m4, remove m2") ||
		!strings.Contains(got.err, "no job moves on at the moment: the cluster did not do it within 300ms: no leader") {
		t.Errorf("got %+v", got)
	}
	for _, text := range []string{"0s", "-1s"} {
		f.run(t, "member", "jobs", "--timeout="+text).want(t, ctl.StatusUsage, "", "--timeout "+text+": give a time, such as 5s")
	}
}

// Ensure that the beginning of an id is enough if it is long enough and begins no other.
func TestRun_memberJobs_prefix(t *testing.T) {
	f := startCluster(t)
	for _, id := range []uint64{0x3f2a00, 0x3f2abb, 0x3f2abc} {
		f.jobs = append(f.jobs, &quoratepb.Job{Id: id, Spec: f.job.Spec, State: "queued"})
	}
	for word, want := range map[string]string{
		"3F2A0": "", "3f2": `remembers no job "3f2"`, "3f2a": `3 jobs begin with "3f2a"; give more of the id`, "3f2abc": "",
	} {
		got := f.run(t, "member", "jobs", "show", word)
		if (want == "") != (got.status == 0) || !strings.Contains(got.err, want) {
			t.Errorf("%s: got status %d, %q, want %q", word, got.status, got.err, want)
		}
	}
}

func TestRun_memberJobs(t *testing.T) {
	f := startCluster(t)
	f.run(t, "member", "jobs").want(t, 0, "", "no jobs\n")
	running := f.jobEvent("running", "start", 5_000).Jobs[0]
	now := time.Now().UnixMilli() // this machine's clock says how long a job runs that was not seen to begin
	running.StartedMs, running.UpdatedMs = now-65_000, now-60_000
	running.Message, running.Config = "m4 has not started yet", f.cluster.Config
	ended := f.jobEvent("failed", "swap", 9_000).Jobs[0]
	ended.Id, ended.Spec = 7, &quoratepb.ChangeSpec{Demote: []uint64{0xa3}, Update: []*quoratepb.NewURLs{{Id: 0xa9}}}
	ended.Spec.Remove, ended.Names = []uint64{0xa8}, []*quoratepb.NamedMember{{Id: 0xa8, Name: "m8"}}
	f.jobs = []*quoratepb.Job{ended, running}
	same(t, "the list", f.run(t, "member", "jobs", "list").out, `
ID    KIND     STATE    PHASE  CREATED               CHANGE                           MESSAGE
7     change   failed   -      1970-01-01T00:16:40Z  demote m3, remove m8, update a9  m4 was never heard
3f2a  replace  running  start  1970-01-01T00:16:40Z  add m4, remove m2                m4 has not started yet
`[1:])
	got := f.run(t, "member", "jobs", "show", "3F2A").out
	got = strings.Replace(got, time.UnixMilli(running.StartedMs).UTC().Format(time.RFC3339), "65 s ago", 1)
	same(t, "one job", got, `
replace job 3f2a · running for 1m05s
[1/3] join   passed
[2/3] start  m4 has not started yet
[3/3] swap
change      add m4, remove m2
message     m4 has not started yet
created     1970-01-01T00:16:40Z
started     65 s ago
began with  configuration 41.7.0
`[1:])
	if got := f.run(t, "member", "jobs", "show", "7", "-o", "json").out; !strings.HasPrefix(got, `{"id":"7",`) {
		t.Errorf("got %q", got)
	}
}

// Ensure that a stream that breaks is opened again, and that a job that ended meanwhile is seen to have ended.
func TestRun_memberJobs_streamBreaks(t *testing.T) {
	f := startCluster(t)
	f.jobs = []*quoratepb.Job{f.job}
	events := f.played()
	f.streams = []fakeStream{
		{events[:2], status.Error(codes.Unavailable, "stopping")},
		{nil, status.Error(codes.Unavailable, "not yet")},
		{[]*quoratepb.Event{stateOf(events[3])}, nil},
	}
	f.run(t, "member", "jobs", "watch", "3f2a").want(t, 0, strings.Replace(replaceText, "[3/3] swap\n",
		"connection lost (stopping); the job goes on, trying again\n", 1), "")
}

// Ensure that a member that dies and comes back is found again.
func TestRun_memberJobs_memberDies(t *testing.T) {
	f := startCluster(t)
	f.jobs = []*quoratepb.Job{f.job}
	events := f.played()
	f.streams = []fakeStream{{events: events[:2]}}
	go func() {
		<-f.watched
		f.mu.Lock()
		f.streams = []fakeStream{{events: []*quoratepb.Event{stateOf(events[2]), events[3]}}}
		server := f.server
		f.mu.Unlock()
		server.Stop()
		f.serve(t, f.address)
	}()
	got := f.run(t, "member", "jobs", "watch", "3f2a")
	if got.status != 0 || !strings.Contains(got.out, "connection lost (") || !strings.HasSuffix(got.out,
		"[3/3] swap\ndone in 12 s · configuration 44.7.1 · may be switched off: m2\n") {
		t.Errorf("got status %d, %q, %q", got.status, got.out, got.err)
	}
}

// Ensure that a cluster that stays away ends the command in the end, and not the job.
func TestRun_memberJobs_gone(t *testing.T) {
	f := startCluster(t)
	f.jobs = []*quoratepb.Job{f.job}
	f.streams = []fakeStream{{f.played()[:1], status.Error(codes.Unavailable, "stopping")},
		{nil, status.Error(codes.Unavailable, "stopping")}}
	got := f.run(t, "member", "jobs", "watch", "3f2a", "--timeout=500ms")
	if got.status != ctl.StatusUnreachable || !strings.Contains(got.err, "job 3f2a goes on; `quorate member jobs watch 3f2a`") ||
		!strings.Contains(got.err, "the cluster cannot be heard any more") {
		t.Errorf("got status %d, %q", got.status, got.err)
	}
}

// Ensure that an interrupt leaves the job alone and says how to come back.
func TestRun_memberJobs_interrupt(t *testing.T) {
	f := startCluster(t)
	f.jobs = []*quoratepb.Job{f.job}
	f.streams = []fakeStream{{events: f.played()[:1]}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-f.watched
		cancel()
	}()
	got := runIn(t, ctx, []string{"QUORATE_ENDPOINTS=" + f.address}, "", "member", "jobs", "watch", "3f2a")
	if want := "job 3f2a goes on; `quorate member jobs watch 3f2a` shows it, `quorate member jobs cancel 3f2a` stops it\n"; got.
		status != 130 || got.err != want {
		t.Errorf("got status %d, %q; want 130, %q", got.status, got.err, want)
	}
}

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
	lines := memberWatch(t, f, 6, "member", "watch")
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
	lines = memberWatch(t, f, 2, "member", "watch", "-o", "json", "--interval=1s")
	for line := range strings.Lines(lines) {
		if !json.Valid([]byte(line)) {
			t.Errorf("got %q, want JSON", line)
		}
	}
	if lines = memberWatch(t, f, 2, "member", "watch", "-o", "yaml"); !strings.HasPrefix(lines, "---\ncluster:\n") {
		t.Errorf("got %q, want a document of YAML", lines)
	}
}

// memberWatch runs a command that does not end by itself until it has printed n lines.
func memberWatch(t *testing.T, f *fakeCluster, n int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := &lineCounter{stop: cancel, left: n}
	status := ctl.Run(ctx, args, ctl.Streams{Out: out, Err: io.Discard, Environ: []string{"QUORATE_ENDPOINTS=" + f.address}})
	if status != 130 {
		t.Errorf("%q: got status %d, want 130", args, status)
	}
	return out.text.String()
}
