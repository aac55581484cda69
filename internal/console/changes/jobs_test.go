package changes_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
)

// Ensure that jobs are listed with what they are at, and those that have ended with what undoes them.
func TestPages_jobs(t *testing.T) {
	f := newCluster(t)
	want(t, "no job", f.look().get(t, "/changes"), "No job runs or waits", "No job has ended yet", `href="/changes/plan?verb=drain"`)
	f.cluster.Members = append(f.cluster.Members, &quoratepb.Member{Id: 0xa4, Name: "m4", Active: true, Started: true, State: "snapshot",
		SnapshotSentBytes: 256 << 20, SnapshotTotalBytes: 1 << 30, BytesPerSecond: 64 << 20})
	running := replaceJob("running", "snapshot")
	running.Message = "m4 receives the state"
	f.jobs = []*quoratepb.Job{
		clone(replaceJob("done", "settle"), func(j *quoratepb.Job) {
			j.Id, j.EndedMs, j.Message = 0xd, 1_000_000, "m1, m3 and m4 vote; m2 may be switched off"
			j.Undo = "quorate member replace m4 --name m2 --peer-urls http://10.0.4.2:2380"
		}),
		clone(replaceJob("failed", "start"), func(j *quoratepb.Job) { j.Id, j.EndedMs, j.Undo = 0xe, 2_000_000, "quorate no" }),
		running,
		{Id: 0x99, State: "queued", QueuePosition: 1, Spec: &quoratepb.ChangeSpec{Kind: "drain", Drain: []uint64{0xa1}}, Phases: []string{"drain"}},
	}
	text := f.look().get(t, "/changes")
	want(t, "the list", text, "add m4, remove m2", "for 9 s", "25 % · 256 MiB of 1.00 GiB · 64.0 MiB/s · 12 s left",
		`<li class="past"><b>join</b> <span>passed</span>`, `<li class="now" aria-current="step"><b>snapshot</b>`, "behind 1 job", "drain m1",
		`href="/changes/cancel?id=3f2a"`, "may be switched off", "quorate member replace m4 --name m2", "!quorate no")
	if done, failed := strings.Index(text, "id=d\""), strings.Index(text, "id=e\""); failed < 0 || done < failed {
		t.Errorf("the job that ended last is not first:\n%s", text)
	}
	l := f.look()
	l.admin = false
	want(t, "read-only", l.get(t, "/changes"), "!/changes/cancel", "this console is read-only")
	for i := range 40 {
		f.jobs = append(f.jobs, &quoratepb.Job{Id: uint64(0x1000 + i), State: "cancelled", EndedMs: int64(10_000_000 + i),
			Spec: &quoratepb.ChangeSpec{Remove: []uint64{0xa3}}})
	}
	want(t, "many", f.look().get(t, "/changes"), "30 older jobs", "id=1027", "!id=1000")
	want(t, "all of many", f.look().get(t, "/changes?all=1"), "!more</a>", "id=1000")
}

// Ensure that a page tells how long a phase took that it saw, and does not invent it otherwise.
func TestPages_jobs_phases(t *testing.T) {
	f, l := newCluster(t), look{}
	l = f.look()
	f.jobs = []*quoratepb.Job{replaceJob("running", "start")}
	l.get(t, "/changes")
	l.now = l.now.Add(4 * time.Second)
	l.get(t, "/changes")
	f.jobs = []*quoratepb.Job{replaceJob("running", "catch-up")}
	l.now = l.now.Add(3 * time.Second)
	want(t, "seen", l.get(t, "/changes/job?id=3f2a"), "passed", "done</span>", "!done in")
	l.now = l.now.Add(2 * time.Second)
	f.jobs = []*quoratepb.Job{replaceJob("running", "swap")}
	want(t, "seen from its beginning", l.get(t, "/changes/job?id=3f2a"), "done in 2.00 s")
	l.now = l.now.Add(time.Hour)
	want(t, "not seen for long", l.get(t, "/changes/job?id=3f2a"), "passed", "!done in")
}

// Ensure that a page which nobody has looked at tells of phases what the cluster stores.
func TestPages_jobs_told(t *testing.T) {
	f := newCluster(t)
	job := replaceJob("running", "catch-up")
	for i, phase := range []string{"join", "start", "catch-up"} {
		job.Begun = append(job.Begun, &quoratepb.PhaseTime{Phase: phase, AtMs: 990_000 + int64(i)*3500})
	}
	f.jobs = []*quoratepb.Job{job}
	want(t, "told", f.look().get(t, "/changes/job?id=3f2a"), `scope="col">Began<`, "1970-01-01 00:16:37Z", "done in 3.50 s", "passed")
	f.jobs = []*quoratepb.Job{replaceJob("running", "catch-up")}
	want(t, "of a leader of 1.0", f.look().get(t, "/changes/job?id=3f2a"), `!scope="col">Began<`, "!done in")
}

// Ensure that phases that a job did not come to are not said to come once it has ended, or is undone.
func TestPages_jobs_unreached(t *testing.T) {
	f := newCluster(t)
	f.jobs = []*quoratepb.Job{replaceJob("failed", "start")}
	want(t, "it failed", f.look().get(t, "/changes/job?id=3f2a"), "not reached", "!to come", `<span class="tag busy">failed</span>`)
	f.jobs = []*quoratepb.Job{replaceJob("running", "undo")}
	want(t, "it is undone", f.look().get(t, "/changes/job?id=3f2a"), "not seen", "!to come", "the job was cancelled: newcomers are removed again")
	f.jobs = []*quoratepb.Job{replaceJob("running", "start")}
	want(t, "it runs", f.look().get(t, "/changes/job?id=3f2a"), "to come", "!not reached")
}

// Ensure that a job shows all that is known of it, and one that is gone says so.
func TestPages_job(t *testing.T) {
	f := newCluster(t)
	job := replaceJob("running", "swap")
	job.Spec.JoinWithinMs, job.Spec.Force, job.Spec.After = 1_800_000, "the machine burned", []uint64{0x77}
	f.jobs = []*quoratepb.Job{job}
	want(t, "a job", f.look().get(t, "/changes/job?id=3F2A"), "add m4, remove m2", "leaves for ever", "joins, and votes once it has caught up",
		"voter, silent", "no member", "1970-01-01 00:16:30Z", "configuration <code>41.7.0</code>", "30 min", "the machine burned", "id=77",
		"the voters change in one step", "a majority of the old and of the new voters", "Step by step", "/changes/cancel?id=3f2a")
	if got := f.look().command(t, "/changes/job?id=3f2a", "job-one"); got != "quorate member jobs show 3f2a" {
		t.Errorf("got the command %s", got)
	}
	for query, part := range map[string]string{"id=9": "The cluster remembers no job 9.", "": "names no job", "id=zz": "is not the id of a job",
		"id=" + url.QueryEscape("\u202e<b>"): "is not the id of a job"} {
		for _, path := range []string{"/changes/job", "/changes/cancel", "/changes/replace/job"} {
			want(t, path+"?"+query, f.look().get(t, path+"?"+query), part, "!<b>", "!\u202e", "!<form")
		}
	}
}

// Ensure that jobs are shown without a leader, and that a user who may not see them is told.
func TestPages_errors(t *testing.T) {
	f := newCluster(t)
	f.jobs = []*quoratepb.Job{replaceJob("running", "swap")}
	f.refusals["Describe"] = status.Error(codes.Unavailable, "no leader")
	want(t, "no leader", f.look().get(t, "/changes/job?id=3f2a"), "No job moves on at the moment: no leader.", "add m4, remove m2")
	for _, method := range []string{"Describe", "ListJobs"} {
		f.refusals[method] = status.Error(codes.PermissionDenied, "permission denied")
		if _, err := f.look().try(t, "/changes/job?id=3f2a"); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: got %v, want that it is not permitted", method, err)
		}
	}
	f.refusals["Plan"] = status.Error(codes.Unavailable, "no leader")
	if _, err := f.look().try(t, "/changes/plan?verb=remove&member=m2"); status.Code(err) != codes.Unavailable {
		t.Errorf("a plan without a leader: got %v", err)
	}
}

// Ensure that texts of members and of jobs are no markup, turn no direction, and fit into a page.
func TestPages_hostile(t *testing.T) {
	f := newCluster(t)
	evil := `"><script>alert(1)</script>` + "\u202e\x00\x1b[2J" + strings.Repeat("x", 1<<20)
	f.cluster.Members[1].Name, f.cluster.Members[1].PeerUrls = evil, []string{evil}
	f.cluster.Members[1].Zone, f.cluster.Members[1].State = evil, evil
	f.plan.Blockers, f.plan.Warnings = []string{evil}, []string{evil}
	f.plan.Steps[0].Title, f.plan.Steps[0].Detail = evil, evil
	job := replaceJob("running", "start")
	job.Message, job.Spec.Force, job.Names[0].Name, job.Spec.Add[0].Name = evil, evil, evil, evil
	f.jobs = []*quoratepb.Job{job, clone(job, func(j *quoratepb.Job) { j.Id, j.State, j.Undo, j.EndedMs = 7, "done", evil, 1 })}
	for _, link := range []string{"/changes", "/changes/job?id=3f2a", "/changes/job?id=7", "/changes/cancel?id=3f2a", "/changes/replace",
		"/changes/replace?member=a2", "/changes/replace?member=a2&name=m4&peer-urls=http://a:1", "/changes/replace/job?id=3f2a",
		"/changes/plan?verb=remove&member=a2", "/changes/plan?verb=change&remove=a2&add=" + url.QueryEscape(evil[:100]),
		"/changes/plan?verb=" + url.QueryEscape(evil[:40])} {
		text := f.look().get(t, link)
		want(t, link, text, "!<script>", "!\u202e", "!\x1b", "!\x00")
		if len(text) > 300_000 {
			t.Errorf("%s: %d bytes", link, len(text))
		}
	}
}

// Ensure that who cancels a job sees what becomes of it first, and that nothing else is cancelled.
func TestPages_cancel(t *testing.T) {
	f := newCluster(t)
	f.jobs = []*quoratepb.Job{replaceJob("running", "catch-up")}
	text := f.look().get(t, "/changes/cancel?id=3f2a")
	want(t, "a job that runs", text, "removed again: m4.", "Back to the job")
	path, fields := form(t, text)
	out, err := f.look().post(t, path, fields)
	if err != nil || out.To != "/changes/job?id=3f2a" || out.Said != "Job 3f2a is being cancelled." || fmt.Sprint(f.cancelled) != "[16170]" {
		t.Errorf("got %+v, %v, cancelled %v", out, err, f.cancelled)
	}
	f.jobs[0].CancelAsked = true
	want(t, "one that is being cancelled", f.look().get(t, "/changes/job?id=3f2a"), "is being cancelled")
	f.jobs[0].State = "done"
	want(t, "one that has ended", f.look().get(t, "/changes/cancel?id=3f2a"), "The job is done already", "!<form")
	l := f.look()
	l.admin, f.jobs[0].State = false, "running"
	want(t, "read-only", l.get(t, "/changes/cancel?id=3f2a"), "read-only", "!<form")
	for id, part := range map[string]string{"9": "remembers no job 9", "zz": "is not the id of a job", "": "names no job"} {
		if _, err := f.look().post(t, path, url.Values{"id": {id}}); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: got %v, want %q", id, err, part)
		}
	}
	f.refusals["CancelJob"] = status.Error(codes.Unavailable, "no leader")
	if _, err := f.look().post(t, path, fields); err == nil || !strings.Contains(err.Error(), "did not answer in time (no leader)") {
		t.Errorf("no leader: got %v", err)
	}
}
