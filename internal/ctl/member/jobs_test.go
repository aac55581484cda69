package member_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
)

// Ensure that every other end of a job is told, with the status for it.
func TestRun_memberJobs_ends(t *testing.T) {
	f := startCluster(t)
	f.jobs = []*quoratepb.Job{f.job}
	for _, tc := range []struct {
		name, command, state string
		status               int
		out, err             string
	}{
		{"it fails", "watch", "failed", command.StatusRefused, "queued\n", "job 3f2a failed: m4 was never heard"},
		{"somebody cancels it", "watch", "cancelled", command.StatusRefused, "queued\n", "job 3f2a cancelled: m4 was never " +
			"heard"},
		{"we cancel it", "cancel", "cancelled", 0, "queued\ncancelled: m4 was never heard\n", ""},
		{"it is too late", "cancel", "done", command.StatusRefused, "queued\n",
			"the job could not be cancelled any more: it is done in 12 s"},
		{"it is done", "watch", "done", 0,
			"queued\ndone in 12 s · configuration 44.7.1 · may be switched off: m2\n", ""},
	} {
		f.streams = []fakeStream{{events: []*quoratepb.Event{stateOf(f.jobEvent(tc.state, "swap", 12_000))}}}
		t.Log(tc.name)
		f.run(t, "member", "jobs", tc.command, "3f2a").Want(t, tc.status, tc.out, tc.err)
	}
	undone := f.jobEvent("done", "swap", 12_000)
	undone.Jobs[0].Undo = "quorate member remove m4"
	f.streams = []fakeStream{{events: []*quoratepb.Event{stateOf(undone)}}}
	f.run(t, "member", "jobs", "watch", "3f2a").Want(t, 0, "queued\ndone in 12 s · configuration 44.7.1 · may be switched "+
		"off: m2\nundo: quorate member remove m4\n", "")
	f.run(t, "member", "jobs", "cancel", "16170", "--detach").Want(t, 0,
		"job 3f2a is queued; see `quorate member jobs watch 3f2a`\n", "")
	f.streams = []fakeStream{{events: []*quoratepb.Event{{Kind: quoratepb.Event_KIND_STATE, Cluster: f.cluster}}}}
	f.run(t, "member", "jobs", "watch", "3f2a", "--timeout=100ms").Want(t, command.StatusRefused, "queued\n",
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
	if got.Status != 0 || !strings.Contains(got.Out, "add m4, remove m2") ||
		!strings.Contains(got.Err, "no job moves on at the moment: the cluster did not do it within 300ms: no leader") {
		t.Errorf("got %+v", got)
	}
	for _, text := range []string{"0s", "-1s"} {
		f.run(t, "member", "jobs", "--timeout="+text).Want(t, command.StatusUsage, "", "--timeout "+text+": give a time, "+
			"such as 5s")
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
		if (want == "") != (got.Status == 0) || !strings.Contains(got.Err, want) {
			t.Errorf("%s: got status %d, %q, want %q", word, got.Status, got.Err, want)
		}
	}
}

func TestRun_memberJobs(t *testing.T) {
	f := startCluster(t)
	f.run(t, "member", "jobs").Want(t, 0, "", "no jobs\n")
	running := f.jobEvent("running", "start", 5_000).Jobs[0]
	now := time.Now().UnixMilli() // this machine's clock says how long a job runs that was not seen to begin
	running.StartedMs, running.UpdatedMs = now-65_000, now-60_000
	running.Message, running.Config = "m4 has not started yet", f.cluster.Config
	ended := f.jobEvent("failed", "swap", 9_000).Jobs[0]
	ended.Id, ended.Spec = 7, &quoratepb.ChangeSpec{Demote: []uint64{0xa3}, Update: []*quoratepb.NewURLs{{Id: 0xa9}}}
	ended.Spec.Remove, ended.Names = []uint64{0xa8}, []*quoratepb.NamedMember{{Id: 0xa8, Name: "m8"}}
	f.jobs = []*quoratepb.Job{ended, running}
	same(t, "the list", f.run(t, "member", "jobs", "list").Out, `
ID    KIND     STATE    PHASE  CREATED               CHANGE                           MESSAGE
7     change   failed   -      1970-01-01T00:16:40Z  demote m3, remove m8, update a9  m4 was never heard
3f2a  replace  running  start  1970-01-01T00:16:40Z  add m4, remove m2                m4 has not started yet
`[1:])
	got := f.run(t, "member", "jobs", "show", "3F2A").Out
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
	if got := f.run(t, "member", "jobs", "show", "7", "-o", "json").Out; !strings.HasPrefix(got, `{"id":"7",`) {
		t.Errorf("got %q", got)
	}
}

// Ensure that the line that takes a change back can be typed, also one of an earlier server, and that what else belongs to it stands
// below.
func TestJobs_undo(t *testing.T) {
	const note = "      who comes back by it is a new member: start it with --join and another, empty data directory\n"
	for undo, want := range map[string]string{
		"quorate member remove m4": "undo: quorate member remove m4\n",
		"quorate member add m1 --peer-urls http://127.0.0.1:12381, with an empty data directory": "undo: quorate member add " +
			"m1 --peer-urls http://127.0.0.1:12381\n" + note,
		"quorate member replace m4 --name m1 --peer-urls http://a:1": "undo: quorate member replace m4 --name m1 --peer-urls " +
			"http://a:1\n" +
			note,
		"quorate member change --add m1=http://a:1 --demote m4": "undo: quorate member change --add m1=http://a:1 --demote " +
			"m4\n" + note,
		"quorate member update m1 --peer-urls http://a:1": "undo: quorate member update m1 --peer-urls http://a:1\n",
	} {
		f := startCluster(t)
		f.jobs = []*quoratepb.Job{f.job}
		done := f.jobEvent("done", "swap", 12_000)
		done.Jobs[0].Undo = undo
		f.streams = []fakeStream{{events: []*quoratepb.Event{stateOf(done)}}}
		f.run(t, "member", "jobs", "watch", "3f2a").Want(t, 0, "queued\ndone in 12 s · configuration 44.7.1 · may be "+
			"switched off: m2\n"+
			want, "")
	}
}
