package upgrade_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// fakeCluster serves the services Upgrade and Membership with answers of a test.
type fakeCluster struct {
	quoratepb.UnimplementedUpgradeServer
	quoratepb.UnimplementedMembershipServer
	address   string
	addresses []string // of all members
	status    *quoratepb.UpgradeStatus
	cluster   *quoratepb.Cluster
	jobs      []*quoratepb.Job

	troubles []string // that members report of themselves
	silent   string   // the name of a member at whose client URL no process listens
	unlisted error    // why no member says which there are
	confused bool     // the first member answers at all client URLs

	policies  []string
	finalized []uint32
	refusal   error
}

func (f *fakeCluster) Status(context.Context, *quoratepb.UpgradeStatusRequest) (*quoratepb.UpgradeStatus, error) {
	return f.status, f.refusal
}

func (f *fakeCluster) SetPolicy(_ context.Context, r *quoratepb.SetLevelPolicyRequest) (*quoratepb.UpgradeStatus, error) {
	f.policies, f.status.Policy = append(f.policies, r.GetPolicy()), r.GetPolicy()
	return f.status, f.refusal
}

func (f *fakeCluster) Finalize(_ context.Context, r *quoratepb.FinalizeUpgradeRequest) (*quoratepb.UpgradeStatus, error) {
	f.finalized, f.status.Active = append(f.finalized, r.GetLevel()), r.GetLevel()
	return f.status, f.refusal
}

func (f *fakeCluster) Describe(context.Context, *quoratepb.DescribeRequest) (*quoratepb.DescribeResponse, error) {
	return &quoratepb.DescribeResponse{Cluster: f.cluster}, nil
}

func (f *fakeCluster) ListJobs(context.Context, *quoratepb.ListJobsRequest) (*quoratepb.ListJobsResponse, error) {
	return &quoratepb.ListJobsResponse{Jobs: f.jobs}, nil
}

// fakeMembers are the same members by etcd's API: each serves clients at an address of its own, the first at that of the test.
type fakeMembers struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	*fakeCluster
	id uint64
}

func (f *fakeMembers) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	answer := &pb.MemberListResponse{Header: &pb.ResponseHeader{ClusterId: 1}}
	for i, m := range f.cluster.GetMembers() {
		url := "http://" + f.addresses[i]
		if m.GetName() == f.silent {
			url = "http://127.0.0.1:1"
		}
		answer.Members = append(answer.Members, &pb.Member{ID: m.GetId(), Name: m.GetName(), ClientURLs: []string{url}})
	}
	return answer, f.unlisted
}

func (f *fakeMembers) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	id := f.id
	if f.confused {
		id = 0xa1
	}
	return &pb.StatusResponse{Header: &pb.ResponseHeader{ClusterId: 1, MemberId: id}, Leader: 0xa1, Errors: f.troubles}, nil
}

// startCluster serves five members in two zones, of which the fifth is a learner and runs the new build.
func startCluster(t *testing.T) *fakeCluster {
	t.Helper()
	f := &fakeCluster{status: &quoratepb.UpgradeStatus{
		Active: 1, Common: 1, Policy: "soak=24h", SoakSeconds: 24 * 3600, Enables: "all that release 1.1.0 knows",
	}, cluster: &quoratepb.Cluster{Leader: 0xa1, Settled: true, Strength: &quoratepb.Strength{Voters: 4, Active: 4,
		Tolerates: 1}}}
	for i, zone := range []string{"north", "north", "south", "south", "north"} {
		id, name, build, known := uint64(0xa1+i), "m"+string(rune('1'+i)), "1.0.0", uint32(1)
		role := quoratepb.Role_ROLE_VOTER
		if i == 4 {
			role, build, known = quoratepb.Role_ROLE_LEARNER, "1.1.0", 2
		}
		f.status.Members = append(f.status.Members, &quoratepb.MemberLevel{Id: id, Name: name, Build: build, Level: known})
		f.cluster.Members = append(f.cluster.Members, &quoratepb.Member{Id: id, Name: name, Role: role, Zone: zone,
			Started: true,
			Active:  true, CaughtUp: true, Leader: i == 0, Build: build, State: "replicate"})
		f.addresses = append(f.addresses, f.serve(t, id))
	}
	f.address = f.addresses[0]
	return f
}

// serve serves one member, and returns where.
func (f *fakeCluster) serve(t *testing.T, id uint64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterClusterServer(server, &fakeMembers{fakeCluster: f, id: id})
	pb.RegisterMaintenanceServer(server, &fakeMembers{fakeCluster: f, id: id})
	quoratepb.RegisterUpgradeServer(server, f)
	quoratepb.RegisterMembershipServer(server, f)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

func (f *fakeCluster) run(t *testing.T, args ...string) ctltest.Result {
	t.Helper()
	return ctltest.RunAt(t, f.address, append([]string{"upgrade"}, args...)...)
}

func same(t *testing.T, name, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// allKnow makes all members run the new build.
func (f *fakeCluster) allKnow(soaked int64) {
	f.status.Common, f.status.SoakedSeconds = 2, soaked
	for _, m := range f.status.Members {
		m.Build, m.Level = "1.1.0", 2
	}
}

// Ensure that a status says which members hold the level back, when it rises, and until when the former build may return.
func TestRun_status(t *testing.T) {
	f := startCluster(t)
	f.status.Members[3] = &quoratepb.MemberLevel{Id: 0xa4, Name: "m4"}
	f.status.Members = append(f.status.Members, &quoratepb.MemberLevel{Id: 0xa6})
	same(t, "held back", f.run(t, "status").Out, `
feature level 1 is active; policy soak=24h
level 2 is held back by m1 (build 1.0.0), m2 (build 1.0.0), m3 (build 1.0.0), m4 (not started), a6 (not started): start the new build there, or remove them
the former build may return at every member until the level rises
MEMBER  ID  BUILD  LEVEL
m1      a1  1.0.0  1
m2      a2  1.0.0  1
m3      a3  1.0.0  1
m4      a4  -      not started
m5      a5  1.1.0  2
-       a6  -      not started
`[1:])
	f.status.Members = f.status.Members[:5]
	f.allKnow(3 * 3600)
	f.status.PausedBy = "m3 finds DISK_SLOW: \x1b[2Ja slow disk"
	soaks := f.run(t, "status").Out
	for _, want := range []string{"all members know level 2: all that release 1.1.0 knows",
		"run it for 3h0m0s; the level rises after 21h0m0s more", "the former build may return until then",
		"no time counts now: m3 finds DISK_SLOW: [2Ja slow disk; see `quorate doctor`"} {
		if !strings.Contains(soaks, want) {
			t.Errorf("%q is not in:\n%s", want, soaks)
		}
	}
	var answer struct {
		Active, Common uint32
		SoakedSeconds  string `json:"soaked_seconds"`
	}
	if err := json.Unmarshal([]byte(f.run(t, "status", "-o", "json").Out), &answer); err != nil || answer.Common != 2 ||
		answer.SoakedSeconds != "10800" {
		t.Errorf("%+v, %v", answer, err)
	}
	f.status.Policy, f.status.DowngradeTo, f.status.PolicyBefore, f.status.PausedBy = "hold", "1.0", "soak=24h", ""
	back := f.run(t, "status").Out
	for _, want := range []string{"policy hold: the level rises when `quorate upgrade finalize` says so",
		"a downgrade to release 1.0 is under way", "`etcdctl downgrade cancel`, policy soak=24h comes back"} {
		if !strings.Contains(back, want) {
			t.Errorf("%q is not in:\n%s", want, back)
		}
	}
	f.status.Policy, f.status.DowngradeTo, f.status.PolicyBefore = "soak=24h", "", ""
	f.status.Active = 2
	if out := f.run(t, "status").Out; !strings.HasPrefix(out, "feature level 2 is active; policy soak=24h\nMEMBER") {
		t.Errorf("after the rise:\n%s", out)
	}
}

// Ensure that a policy is checked before the cluster is asked, and that finalize asks before it raises the level that was
// shown.
func TestRun_policyAndFinalize(t *testing.T) {
	f := startCluster(t)
	if r := f.run(t, "policy", "soak=1ms"); r.Status != command.StatusUsage || !strings.Contains(r.Err, "in whole seconds") {
		t.Errorf("%+v", r)
	}
	if r := f.run(t, "policy", "soak=72h"); r.Status != 0 || !strings.Contains(r.Out, "policy soak=72h") {
		t.Errorf("%+v", r)
	}
	if r := f.run(t, "finalize", "--yes"); r.Status != command.StatusRefused || !strings.Contains(r.Err, "nothing to "+
		"finalize") ||
		!strings.Contains(r.Err, "held back by m1") {
		t.Errorf("%+v", r)
	}
	f.status.Members[4].Level = 1
	if r := f.run(t, "finalize", "--yes"); r.Status != command.StatusRefused || !strings.Contains(r.Err, "no member knows a higher one") {
		t.Errorf("%+v", r)
	}
	f.allKnow(0)
	if r := f.run(t, "hold"); r.Status != 0 || !strings.Contains(r.Out, "policy hold: the level rises when") {
		t.Errorf("%+v", r)
	}
	if r := f.run(t, "finalize"); r.Status != command.StatusRefused || !strings.Contains(r.Err, "cannot return") ||
		!strings.Contains(r.Err, "nothing was changed") || len(f.finalized) > 0 {
		t.Errorf("%+v, %v", r, f.finalized)
	}
	if r := f.run(t, "finalize", "--yes"); r.Status != 0 || !cmp.Equal(f.finalized, []uint32{2}) {
		t.Errorf("%+v, %v", r, f.finalized)
	}
	f.refusal, f.status.Active = status.Error(codes.FailedPrecondition, "m9 was added"), 1
	if r := f.run(t, "finalize", "--yes"); r.Status == 0 || !strings.Contains(r.Err, "m9 was added") {
		t.Errorf("%+v", r)
	}
	if !cmp.Equal(f.policies, []string{"soak=72h", "hold"}) {
		t.Errorf("policies %v", f.policies)
	}
}

// Ensure that learners come first, the zone of the leader last, and the leader after all, without those that are done; and that
// the plan tells to wait while a member is away or a job runs.
func TestRun_plan(t *testing.T) {
	f := startCluster(t)
	same(t, "order", f.run(t, "plan", "--to", "1.1.0").Out, `
done: m5
STEP  MEMBER  ROLE      ZONE   BUILD  DO
1     m3      follower  south  1.0.0  stop, start the new build
2     m4      follower  south  1.0.0  stop, start the new build
3     m2      follower  north  1.0.0  stop, start the new build
4     m1      leader    north  1.0.0  stop (it hands leadership over first), start the new build
After each step wait until `[1:]+"`quorate upgrade plan`"+` blocks nothing. With one or two voters writes pause meanwhile.
`)
	if out := f.run(t, "plan").Out; !strings.Contains(out, "1     m5      learner") {
		t.Errorf("without a build to go to:\n%s", out)
	}
	f.cluster.Members[2].Active = false
	f.cluster.Members[3].CaughtUp = false
	f.cluster.Strength.Tolerates = 0
	f.jobs = []*quoratepb.Job{{Id: 0x3f, State: "done"}, {Id: 0x2f, State: "running"}}
	r := f.run(t, "plan", "-o", "json")
	var answer struct{ Blockers []string }
	if err := json.Unmarshal([]byte(r.Out), &answer); err != nil || r.Status != command.StatusRefused ||
		len(answer.Blockers) != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	f.troubles = []string{"disk of m1 nearly full", "memberID:161 alarm:NOSPACE "}
	f.cluster.Alarms = []string{"disk of m1 nearly full", "a member of another epoch"}
	full := f.run(t, "plan").Out
	for _, want := range []string{"report: disk of m1 nearly full", "alarm NOSPACE of m", "not now: a member of another epoch"} {
		if strings.Count(full, want) != 1 {
			t.Errorf("not once: %q in\n%s", want, full)
		}
	}
	for i, want := range []string{"the leader does not hear m3: wait if it is starting, else start it", "m4 has not caught up", "would stop writes", "job 2f (running)"} {
		if !strings.Contains(answer.Blockers[i], want) {
			t.Errorf("%q is not in %q", want, answer.Blockers[i])
		}
	}
}

// Ensure that a member that the leader hears and that does not say what it reports keeps an upgrade from being begun.
func TestRun_planUnasked(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*fakeCluster)
		want   string
	}{
		"no process": {func(f *fakeCluster) { f.silent = "m3" }, "m3 did not say what it reports (127.0.0.1:1: "},
		"another member": {func(f *fakeCluster) { f.confused = true }, "is answered by member a1): see that its client URL " +
			"is reached from here"},
		"no list": {func(f *fakeCluster) { f.unlisted = status.Error(codes.Unavailable, "etcdserver: no list") },
			"the members could not be asked what they report ("},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: a process runs one command, and etcdctl's keep flags in variables
			f := startCluster(t)
			row.change(f)
			f.cluster.Alarms = []string{"a member of another epoch"}
			r := f.run(t, "plan")
			if r.Status != command.StatusRefused || !strings.Contains(r.Out, "not now: a member of another epoch") ||
				!strings.Contains(r.Out, row.want) || strings.Contains(r.Out, "m1 did not say") {
				t.Errorf("%+v, want %q", r, row.want)
			}
			f.cluster.Alarms = nil
			f.cluster.Members[2].Active = false
			if r := f.run(t, "plan"); strings.Contains(r.Out, "m3 did not say") {
				t.Errorf("the leader does not hear it: %+v", r)
			}
		})
	}
}

// build writes a program that answers as the file of a build, or with anything else.
func build(t *testing.T, mode os.FileMode, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quorate-new")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ensure that a new build is told apart from one that is too old or too new for the cluster, that runs already, and from files
// that are no build; and that the file is asked for nothing but its version, in an empty environment.
func TestRun_check(t *testing.T) {
	f := startCluster(t)
	says := func(version string, from, to string) string {
		return `[ "$*" = "version -o json" ] && [ -z "$ETCD_NAME" ] &&
			echo '{"version":"` + version + `","level":{"reads_from":` + from +
			`,"reads_to":` + to + `}}'`
	}
	t.Setenv("ETCD_NAME", "m1")
	f.status.Active, f.status.Common = 2, 2
	for _, row := range []struct {
		name, path string
		status     int
		want       string
	}{
		{"the next level", build(t, 0o755, says("1.2.0", "1", "3")), 0, "the cluster stays at level 2, and the former build may return, until " +
			"the policy (soak=24h)"},
		{"the next level, now", build(t, 0o755, says("1.2.0", "1", "3")), 0, "until the last member runs it: the policy is now, and " +
			"`quorate upgrade hold` keeps the way back"},
		{"the next level, on hold", build(t, 0o755, says("1.2.0", "1", "3")), 0, "until `quorate upgrade finalize` raises it"},
		{"the same level", build(t, 0o755, says("1.1.1", "1", "2")), 0, "the former build may return at any time"},
		{"too old", build(t, 0o755, says("1.0.0", "1", "1")), 1, "the cluster is at feature level 2, and build 1.0.0 knows " +
			"1 at most"},
		{"too new", build(t, 0o755, says("3.0.0", "3", "4")), 1, "upgrade to a build between first"},
		{"no levels", build(t, 0o755, `echo '{"version":"0.0.9"}'`), 1, "from before these, or none"},
		{"levels that are none", build(t, 0o755, says("1.0.0", "3", "2")), 1, "does not say which feature levels it knows"},
		{"a version without end", build(t, 0o755, `printf '{"version":"'; head -c 900000 /dev/zero | tr '\0' 'v'
			echo '","level":{"reads_from":1,"reads_to":3}}'`), 0, "build vvvvvvv"},
		{"no program", build(t, 0o755, "exit 3"), 1, "does not tell its version (exit status 3)"},
		{"a build from before the output", build(t, 0o755, "echo unknown flag: -o >&2; exit 2"), 1, "from before `version -o json`"},
		{"one for another machine", foreignBuild(t), 1, "does not run on this machine (" + runtime.GOOS + "/"},
		{"an empty file", emptyFile(t), 1, "or no program"},
		{"another program", build(t, 0o755, "echo etcd Version: 3.7.3"), 1, "does not answer as a build of Quorate"},
		{"a flood", build(t, 0o755, "yes"), 1, "it prints more than 1024 KiB"},
		{"a flood that goes on", build(t, 0o755, "trap '' PIPE; (yes) & yes"), 1, "it prints more than 1024 KiB"},
		{"not executable", build(t, 0o644, ""), 1, "chmod +x"},
		{"a directory", t.TempDir(), 1, "is a directory"},
		{"a device", os.DevNull, 1, "is no file"},
		{"nothing", filepath.Join(t.TempDir(), "missing"), 1, "no such file"},
	} {
		f.status.Policy = "soak=24h"
		if _, policy, ok := strings.Cut(row.name, ", "); ok {
			f.status.Policy = strings.TrimPrefix(policy, "on ")
		}
		r := f.run(t, "check", row.path)
		if r.Status != row.status || !strings.Contains(r.Out+r.Err, row.want) || len(r.Out+r.Err) > 2000 ||
			row.status != 0 && strings.Count(r.Out+r.Err, "\n") > 3 {
			t.Errorf("%s: %+v, want %q", row.name, r, row.want)
		}
	}
	f.cluster.Members[2].Active = false
	r := f.run(t, "check", build(t, 0o755, says("1.2.0", "1", "3")))
	if r.Status != command.StatusRefused || !strings.Contains(r.Out, "NO  members  the leader does not hear m3") {
		t.Errorf("%+v", r)
	}
}

// foreignBuild is a file in the form of a program for a processor that there is not.
func foreignBuild(t *testing.T) string {
	t.Helper()
	header := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 57)...)
	header[16], header[18], header[19] = 2, 0xff, 0xee
	path := filepath.Join(t.TempDir(), "quorate-foreign")
	if err := os.WriteFile(path, header, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func emptyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ensure that nonsense is refused before the cluster is asked.
func TestRun_nonsense(t *testing.T) {
	f := startCluster(t)
	f.refusal = status.Error(codes.Internal, "the cluster was asked")
	for _, row := range []struct{ args, want string }{
		{"policy soak=-1h", "a soak lasts 1s to 2160h, in whole seconds"},
		{"policy soak=0", "a soak lasts 1s to 2160h"},
		{"policy soak=1000000h", "a soak lasts 1s to 2160h"},
		{"policy soak=99999999999h", "want soak=DURATION, such as soak=24h, or now, or hold"},
		{"policy soak", "want soak=DURATION"},
		{"policy " + strings.Repeat("x", 1<<16), "want soak=DURATION"},
		{"policy", "usage: quorate upgrade policy POLICY"},
		{"plan --to latest", "want the whole version that `quorate version` of the new file prints"},
		{"plan --to v1.1.0", "want the whole version"},
		{"plan --to 1.1", "want the whole version"},
		{"plan --to=", "want the whole version"},
		{"check", "usage: quorate upgrade check FILE"},
		{"finalize now", "usage: quorate upgrade finalize"},
	} {
		r := f.run(t, strings.Split(row.args, " ")...)
		if r.Status != command.StatusUsage || !strings.Contains(r.Err, row.want) || len(r.Err) > 1000 || r.Out != "" {
			t.Errorf("%.40s: %+v", row.args, r)
		}
	}
	if len(f.policies)+len(f.finalized) > 0 {
		t.Errorf("something was changed: %v, %v", f.policies, f.finalized)
	}
}

// Ensure that a policy by which the level rises at once is asked about, and no other one.
func TestRun_policyAsks(t *testing.T) {
	f := startCluster(t)
	for _, policy := range []string{"now", "soak=1s"} { // no level waits
		if r := f.run(t, "policy", policy); r.Status != 0 {
			t.Errorf("%s: %+v", policy, r)
		}
	}
	f.allKnow(3600)
	f.policies = nil
	for _, policy := range []string{"now", "soak=1h", "soak=1s"} {
		r := f.run(t, "policy", policy)
		if r.Status != command.StatusRefused || !strings.Contains(r.Err, "level 2 becomes active") ||
			!strings.Contains(r.Err, "nothing was changed") || len(f.policies) > 0 {
			t.Errorf("%s: %+v, %v", policy, r, f.policies)
		}
	}
	for _, args := range [][]string{{"policy", "soak=3601s"}, {"policy", "hold"}, {"policy", "now", "--yes"}} {
		if r := f.run(t, args...); r.Status != 0 {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if !cmp.Equal(f.policies, []string{"soak=3601s", "hold", "now"}) {
		t.Errorf("%v", f.policies)
	}
}
