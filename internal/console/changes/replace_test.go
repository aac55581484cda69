package changes_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
)

// Ensure that a replacement leads from one step to the next, and that each says what it needs.
func TestPages_replace(t *testing.T) {
	f := newCluster(t)
	text := f.look().get(t, "/changes/replace")
	want(t, "step 1", text, `aria-current="step"><span class="nr">1</span>`, "voter", "silent", "7m12s ago", `href="/changes/replace?member=m2"`,
		"The doctor did not answer", "0 failures")
	text = f.look().get(t, "/changes/replace?member=m2")
	want(t, "step 2", text, `aria-current="step"><span class="nr">2</span>`, "m2 leaves", "http://10.0.4.2:2380", `value="auto" checked`,
		"as joint, but the change is decided once majorities", `<option value="m5">`, "!role=\"alert\"", `href="/changes/replace">`)
	text = f.look().get(t, "/changes/replace?member=m2&name=m4&peer-urls=10.0.4.9:2380&protocol=joint")
	want(t, "a URL without a scheme", text, `aria-current="step"><span class="nr">2</span>`, "lacks a scheme", `value="m4"`, `value="10.0.4.9:2380"`,
		`value="joint" checked`)
	want(t, "an unknown member", f.look().get(t, "/changes/replace?member=m9"), "No member is called", "Choose the member", "!<form")
	if len(f.planned) > 0 {
		t.Fatalf("planned %v before all was said", f.planned)
	}
	const link = "/changes/replace?member=m2&name=m4&peer-urls=http://10.0.4.9:2380&protocol=auto"
	text = f.look().get(t, link)
	want(t, "step 3", text, `aria-current="step"><span class="nr">3</span>`, "swap m2 for m4", "Type <b>m2</b>", "step=2",
		"quorate member replace m2 --name m4 --peer-urls http://10.0.4.9:2380</code>")
	want(t, "back at step 2", f.look().get(t, link+"&step=2"), `aria-current="step"><span class="nr">2</span>`, `value="m4"`, "!method=\"post\"")
	path, fields := form(t, text)
	fields.Set("confirm", "m2")
	out, err := f.look().post(t, path, fields)
	if err != nil || !strings.HasPrefix(out.To, "/changes/replace/job?id=") || len(f.started) != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
}

// Ensure that the steps after the plan follow the job: how the newcomer is started, how far it is, and what may be switched off.
func TestPages_replace_job(t *testing.T) {
	f := newCluster(t)
	newcomer := &quoratepb.Member{Id: 0xa4, Name: "m4", PeerUrls: []string{"http://10.0.4.9:2380"}, Role: quoratepb.Role_ROLE_JOINING}
	f.cluster.Members = append(f.cluster.Members, newcomer)
	show := func(job *quoratepb.Job) string {
		f.jobs = []*quoratepb.Job{job}
		return f.look().get(t, "/changes/replace/job?id=3f2a")
	}
	const command = "quorate --name m4 --join http://10.0.4.1:2380 --listen-peer-urls http://10.0.4.9:2380 --initial-advertise-peer-urls http://10.0.4.9:2380"
	want(t, "to be started", show(replaceJob("running", "start")), `aria-current="step"><span class="nr">4</span>`, "Somebody must start m4", command,
		"1 h at most", "m2 stays as it is until")
	newcomer.Started, newcomer.Active, newcomer.Lag = true, true, 900
	want(t, "it catches up", show(replaceJob("running", "catch-up")), `aria-current="step"><span class="nr">5</span>`, "m2 is needed until", "lag 900", "!"+command)
	want(t, "the end", show(clone(replaceJob("done", "settle"), func(j *quoratepb.Job) {
		j.EndedMs, j.Message, j.Undo = 1_000_000, "m1, m3 and m4 vote; m2 may be switched off", "quorate member replace m4 --name m2 --peer-urls http://10.0.4.2:2380"
	})), `aria-current="step"><span class="nr">6</span>`, "m2 may be switched off", "quorate member replace m4", "!Cancel")
	want(t, "the end, of an older server", show(replaceJob("done", "settle")), "may be switched off: m2")
	want(t, "it failed", show(clone(replaceJob("failed", "start"), func(j *quoratepb.Job) { j.Message = "m4 was not started" })),
		"The replacement is failed", "m4 was not started", "Leave m2 as it is", "!may be switched off")
	want(t, "it waits", show(clone(replaceJob("queued", ""), func(j *quoratepb.Job) { j.QueuePosition, j.StartedMs = 2, 0 })), "waits for 2 jobs")
}

// Ensure that the doctor's findings stand beside the members that they are about.
func TestPages_replace_findings(t *testing.T) {
	f := newCluster(t)
	f.observed = &quoratepb.Observation{NowMs: 1_000_000, MemberId: 0xa1, Name: "m1", UpMs: 3600_000, WindowMs: 60_000, HistoryMs: 600_000,
		HeartbeatMs: 100, ElectionMs: 1000, Core: &quoratepb.ObservedCore{Leader: 0xa1, Term: 7, Commit: 9, Applied: 9, LastIndex: 9},
		Config: &quoratepb.ObservedConfig{Index: 41, Settled: true}}
	for _, m := range f.cluster.Members[:3] {
		f.observed.Config.Members = append(f.observed.Config.Members, &quoratepb.ObservedMember{Id: m.Id, Name: m.Name, Voter: true, Started: true})
		if m.Id != 0xa1 {
			f.observed.Peers = append(f.observed.Peers, &quoratepb.ObservedPeer{Id: m.Id, Connected: m.Active, Followed: true, Active: m.Active,
				SilentMs: m.SilentMs, CaughtUp: m.CaughtUp, State: m.State, Match: 9})
		}
	}
	text := f.look().get(t, "/changes/replace")
	want(t, "m2 is down", text, "!The doctor did not answer", "MEMBER_DOWN", "asks at the client ports")
	want(t, "of m2", f.look().get(t, "/changes/replace?member=m2"), "MEMBER_DOWN", "Findings")
	want(t, "of m3", f.look().get(t, "/changes/replace?member=m3"), "!MEMBER_DOWN")
}
