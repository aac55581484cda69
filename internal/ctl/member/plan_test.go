package member_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
)

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
	same(t, "a plan", got.Out, planText[1:])
	if got.Status != 0 || got.Err != "" || len(f.started) > 0 {
		t.Errorf("got status %d, %q, %d jobs; want a plan and no more", got.Status, got.Err, len(f.started))
	}
	f.plan.Blockers = []string{"m3 has not caught up: wait"}
	got = f.run(t, args...)
	same(t, "a plan that is blocked", got.Out, strings.TrimSuffix(planText[1:], "warning: somebody must start m4\n")+
		"blocked: m3 has not caught up: wait\n")
	if got.Status != command.StatusRefused || got.Err != "quorate: the plan is blocked; nothing was changed\n" {
		t.Errorf("blocked: got status %d, %q", got.Status, got.Err)
	}
	got = f.run(t, append(args, "-o", "json")...)
	if got.Status != command.StatusRefused || !strings.Contains(got.Out, `"blockers":["m3 has not caught up: wait"]`) {
		t.Errorf("blocked, as JSON: got status %d, %q", got.Status, got.Out)
	}
	f.plan = &quoratepb.PlanResponse{Done: true}
	f.run(t, "member", "remove", "m2", "--yes").Want(t, 0, "nothing to do: the members are as asked\n", "")
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
		if got := f.run(t, append([]string{"member"}, strings.Fields(tc.line)...)...); got.Status != 0 {
			t.Errorf("%s: got status %d, %s", tc.line, got.Status, got.Err)
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
		{"change --add m4=10.0.4.9:2380 --yes", `--add: "10.0.4.9:2380" lacks a scheme: write http://10.0.4.9:2380, or`, 2},
		{"change --add m4= --yes", "a member needs a peer URL", 2},
		{"change --remove m2 --yes --protocol paxos",
			`--protocol "paxos": choose auto, single, joint, joint-early, activate or apply`, 2},
		{"change --remove m2 --yes --protocol activate-switched",
			"is an experiment that no cluster runs: play it with `quoratesim reconfig --protocol activate-switched`", 2},
		{"plan --remove m2 --yes", "unknown flag: --yes", 2},
		{"plan --remove m2 -o text", `--output "text": choose table, json or yaml`, 2},
		{"change --remove m9 --yes", `no member is called "m9"; there are a1 (m1), a2 (m2), a3 (m3)`, 1},
		{"replace m2 --yes", "replace m2 by whom?", 2},
		{"replace m2 --with m3 --name m4 --yes", "--with names a member that is there already", 2},
		{"replace m2 --with m2 --yes", "m2 cannot take its own place", 1},
		{"replace --yes", "usage: quorate member replace OLD", 2},
		{"add m4 --yes", "say where m4 will be reached", 2},
		{"add m4 m5 --peer-urls http://a:1 --yes", "add takes one NAME", 2},
		{"add http://a:1 --peer-urls http://a:1 --yes", "usage: quorate member add NAME", 2},
		{"update m1 --yes", "a member needs a peer URL", 2},
		{"jobs show 9", `the cluster remembers no job "9"`, 1},
		{"jobs stop", `member jobs has no "stop"; did you mean show?`, 2},
		{"watch --interval -1s", "choose up to an hour", 2},
	} {
		f.run(t, append([]string{"member"}, strings.Fields(tc.line)...)...).Want(t, tc.status, "", tc.want)
	}
	if len(f.started) > 0 {
		t.Errorf("got %d jobs, want none", len(f.started))
	}
}
