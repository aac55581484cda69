package changes_test

import (
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// changesAsked are links of the page that plan a change, and what is planned.
var changesAsked = []struct {
	link string
	want *quoratepb.ChangeSpec
}{
	{"/changes/plan?verb=add&name=m4&peer-urls=http://b:1,+http://a:1&protocol=auto&join-timeout=", &quoratepb.ChangeSpec{
		Add: []*quoratepb.Newcomer{{Name: "m4", PeerUrls: []string{"http://a:1", "http://b:1"}}}, Protocol: "auto"}},
	{"/changes/plan?verb=add&name=its+name&peer-urls=http://c:1&learner=yes&join-timeout=30m&protocol=single", &quoratepb.ChangeSpec{
		Add:      []*quoratepb.Newcomer{{Name: "its name", PeerUrls: []string{"http://c:1"}, Learner: true}},
		Protocol: "single", JoinWithinMs: 1_800_000}},
	{"/changes/plan?verb=add&name=&peer-urls=http://c:1", &quoratepb.ChangeSpec{
		Add: []*quoratepb.Newcomer{{PeerUrls: []string{"http://c:1"}}}, Protocol: "auto"}},
	{"/changes/plan?verb=remove&member=m2&member=a3&protocol=joint", &quoratepb.ChangeSpec{Remove: []uint64{0xa2, 0xa3}, Protocol: "joint"}},
	{"/changes/plan?verb=promote&member=m5", &quoratepb.ChangeSpec{Promote: []uint64{0xa5}, Protocol: "auto"}},
	{"/changes/plan?verb=demote&member=m3", &quoratepb.ChangeSpec{Demote: []uint64{0xa3}, Protocol: "auto"}},
	{"/changes/plan?verb=drain&member=m1", &quoratepb.ChangeSpec{Kind: "drain", Drain: []uint64{0xa1}}},
	{"/changes/plan?verb=cordon&member=m1&member=m3", &quoratepb.ChangeSpec{Cordon: []uint64{0xa1, 0xa3}}},
	{"/changes/plan?verb=uncordon&member=m1", &quoratepb.ChangeSpec{Uncordon: []uint64{0xa1}}},
	{"/changes/plan?verb=update&member=m3&peer-urls=http://c:1&force=it+moves", &quoratepb.ChangeSpec{Force: "it moves",
		Update: []*quoratepb.NewURLs{{Id: 0xa3, PeerUrls: []string{"http://c:1"}}}}},
	{"/changes/plan?verb=reset&member=m2&force=it+burned", &quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{0xa2}, Protocol: "auto",
		Force: "it burned", Add: []*quoratepb.Newcomer{{Name: "m2", PeerUrls: []string{"http://10.0.4.2:2380"}}}}},
	{"/changes/plan?verb=replace&member=m2&name=m4&peer-urls=http://c:1", &quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{0xa2},
		Protocol: "auto", Add: []*quoratepb.Newcomer{{Name: "m4", PeerUrls: []string{"http://c:1"}}}}},
	{"/changes/replace?member=m2&with=m5&protocol=activate&name=&peer-urls=", &quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{0xa2},
		Promote: []uint64{0xa5}, Protocol: "activate"}},
	{"/changes/plan?verb=change&add=" + url.QueryEscape("m4=http://c:1,http://b:1\r\nm6=http://d:1") + "&add-learner=m7%3Dhttp://e:1&remove=m2" +
		"&remove=m3&promote=m5&cordon=m1&update=m1%3Dhttp://f:1", &quoratepb.ChangeSpec{Protocol: "auto", Remove: []uint64{0xa2, 0xa3},
		Promote: []uint64{0xa5}, Cordon: []uint64{0xa1}, Update: []*quoratepb.NewURLs{{Id: 0xa1, PeerUrls: []string{"http://f:1"}}},
		Add: []*quoratepb.Newcomer{{Name: "m4", PeerUrls: []string{"http://b:1", "http://c:1"}}, {Name: "m6", PeerUrls: []string{"http://d:1"}},
			{Name: "m7", PeerUrls: []string{"http://e:1"}, Learner: true}}}},
	{"/changes/plan?verb=change&demote=m3&uncordon=m3&add=&add-learner=&update=&force=it+moves", &quoratepb.ChangeSpec{Protocol: "auto",
		Demote: []uint64{0xa3}, Uncordon: []uint64{0xa3}, Force: "it moves"}},
}

// Ensure that each form plans what it says, and that the command line that is shown beside it plans the same.
func TestPages_plan_spec(t *testing.T) {
	for _, c := range changesAsked {
		f := newCluster(t)
		section := "plan"
		if strings.HasPrefix(c.link, "/changes/replace") {
			section = "replace-plan"
		}
		c.want.Expected = f.cluster.Config
		if c.want.Kind == "" {
			c.want.Kind = "change"
		}
		f.look().get(t, c.link)
		line := f.look().command(t, c.link, section)
		out, err := exec.Command("/bin/sh", "-c", `printf '%s\001' `+line).Output()
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Split(strings.TrimSuffix(string(out), "\001"), "\001")
		if got := ctltest.RunAt(t, f.address, args[1:]...); got.Status != 0 {
			t.Errorf("%s: the command %s ends with %d: %s", c.link, line, got.Status, got.Err)
			continue
		}
		if len(f.planned) != 2 || !proto.Equal(f.planned[0], c.want) || !proto.Equal(f.planned[1], c.want) {
			t.Errorf("%s and %s\nplan %v\nwant %v", c.link, line, f.planned, c.want)
		}
	}
}

// Ensure that a request that makes no sense is answered by a sentence, and asks for no plan.
func TestPages_plan_faults(t *testing.T) {
	f := newCluster(t)
	for link, part := range map[string]string{
		"/changes/plan":                                                                  "Turn learners into voters",
		"/changes/plan?verb=shuffle":                                                     "There is no change called shuffle",
		"/changes/plan?verb=remove&member=m9":                                            "No member is called &#34;m9&#34;; there are a1 (m1)",
		"/changes/plan?verb=add&name=m4":                                                 "a member needs a peer URL",
		"/changes/plan?verb=add&name=m4&peer-urls=10.0.4.9:2380":                         "lacks a scheme: write http://10.0.4.9:2380",
		"/changes/plan?verb=add&name=m4&peer-urls=http://a:1&protocol=paxos":             "There is no protocol paxos",
		"/changes/plan?verb=add&name=m4&peer-urls=http://a:1&protocol=activate-switched": "is an experiment that no cluster runs",
		"/changes/plan?verb=add&name=m4&peer-urls=http://a:1&join-timeout=soon":          "and not soon",
		"/changes/plan?verb=add&name=m4&peer-urls=http://a:1&join-timeout=-1h":           "and not -1h",
		"/changes/plan?verb=update&member=m1&member=m2&peer-urls=http://a:1":             "Choose one member",
		"/changes/plan?verb=update&peer-urls=http://a:1":                                 "Choose a member.",
		"/changes/plan?verb=change&add=m4":                                               "Add m4: write NAME=URL[,URL].",
		"/changes/plan?verb=reset&member=m1":                                             "is up and has its disk",
		"/changes/plan?verb=replace&member=m2&with=m2":                                   "cannot take its own place",
		"/changes/plan?verb=replace&member=m2&with=m5&name=m4":                           "not both",
		"/changes/plan?verb=replace&member=m2&peer-urls=http://a:1":                      "needs a name",
	} {
		want(t, link, f.look().get(t, link), part, "!method=\"post\"")
	}
	if len(f.planned) > 0 {
		t.Errorf("got plans for %v", f.planned)
	}
	for _, code := range []codes.Code{codes.InvalidArgument, codes.FailedPrecondition, codes.NotFound} {
		f.refusals["Plan"] = status.Error(code, "a member is named twice\nthe name is taken")
		want(t, code.String(), f.look().get(t, "/changes/plan?verb=remove&member=m2"), "A member is named twice; the name is taken.", "!method=\"post\"")
	}
	f.planned = nil
	f.refusals["Plan"] = stale(t)
	want(t, "stale once", f.look().get(t, "/changes/plan?verb=remove&member=m2"), "Start this plan")
	if len(f.planned) != 2 {
		t.Errorf("a plan whose cluster changed was made %d times, want 2", len(f.planned))
	}
}

// Ensure that a plan is told in its own words, and can be started only where it is not blocked, by a console with actions.
func TestPages_plan_words(t *testing.T) {
	f := newCluster(t)
	const link = "/changes/plan?verb=remove&member=m2&protocol=joint"
	text := f.look().get(t, link)
	want(t, "a plan", text, "configuration 41.7.0 · leader m1 · protocol joint-early · 3 voters, 1 down (m2, silent for 7m12s), 1 learner",
		"swap m2 for m4 in one joint step", "2 of 3 and 2 of 3", "during", "1 failure", "stream 3.1 GiB", "somebody must start m4",
		"quorate member replace m4 --name m2", "start it with --join and another, empty data directory", "Type <b>m2</b> to confirm",
		"quorate member remove m2 --protocol joint</code>")
	if got, want := f.look().command(t, link, "plan"), "quorate member remove m2 --protocol joint --dry-run"; got != want {
		t.Errorf("got the command %s, want %s", got, want)
	}
	l := f.look()
	l.admin = false
	want(t, "read-only", l.get(t, link), "This console is read-only", "!method=\"post\"", "quorate member remove m2 --protocol joint</code>")
	f.plan.Blockers = []string{"m3 has not caught up: wait"}
	want(t, "blocked", f.look().get(t, link), "m3 has not caught up: wait", "It cannot be started", "!method=\"post\"", "!somebody must start",
		"!Undo it by", "!start as a command")
	f.plan = &quoratepb.PlanResponse{Done: true}
	want(t, "done", f.look().get(t, link), "nothing to do", "!method=\"post\"")
}

// Ensure that the form of a plan starts that very plan, once the names of those that leave are typed.
func TestPages_start(t *testing.T) {
	f := newCluster(t)
	const link = "/changes/plan?verb=remove&member=m2&member=m3"
	path, fields := form(t, f.look().get(t, link))
	for _, typed := range []string{"", "m2", "m1, m2", "M2, m3", "m3 m2", "m3 , m2"} {
		ok := typed == "m3 , m2"
		fields.Set("confirm", typed)
		out, err := f.look().post(t, path, fields)
		switch {
		case ok && (err != nil || len(f.started) != 1 || !strings.HasPrefix(out.To, "/changes/job?id=")):
			t.Errorf("%q: got %+v, %v", typed, out, err)
		case !ok && (err == nil || !strings.Contains(err.Error(), "Type m2, m3, who leave for ever, to confirm") || len(f.started) > 0):
			t.Errorf("%q: got %v, started %v, want it refused", typed, err, f.started)
		}
	}
	want := proto.CloneOf(f.planned[0])
	want.After = f.plan.WaitsFor
	if got := f.started[0]; !proto.Equal(got.Spec, want) || got.RequestId == 0 {
		t.Errorf("got %v, want what was planned: %v", got, want)
	}
	first := f.started[0].RequestId
	if _, err := f.look().post(t, path, fields); err != nil || f.started[1].RequestId != first {
		t.Errorf("the same form again: got %v, %v, want the same request %d", f.started[1], err, first)
	}
	_, other := form(t, f.look().get(t, link))
	if other.Get("request") == fields.Get("request") || other.Get("back") != "/changes/plan?member=m2&member=m3&verb=remove" {
		t.Errorf("another plan has the form %v", other)
	}
	f.cluster.Members = f.cluster.Members[:1] // what was removed has no name any more
	f.started = nil
	fields.Set("confirm", "")
	if _, err := f.look().post(t, path, fields); err != nil || len(f.started) != 1 {
		t.Errorf("the same form once it is done: got %v, want that the leader is asked", err)
	}
}

// Ensure that a plan that is out of date, and what else the leader refuses, is told in words, and that forms of others are refused.
func TestPages_start_refusals(t *testing.T) {
	f := newCluster(t)
	path, fields := form(t, f.look().get(t, "/changes/plan?verb=cordon&member=m3"))
	for part, err := range map[string]error{
		"The members have changed since the plan was made: configuration 43.8.0 is in force now (m9 was added); nothing was changed, plan again.": stale(t),
		"Nothing was changed: m3 is down; m2 lags":                  status.Error(codes.FailedPrecondition, "m3 is down\nm2 lags"),
		"did not answer in time (no leader). It may have been done": status.Error(codes.Unavailable, "no leader"),
	} {
		f.refusals["Start"] = err
		if _, got := f.look().post(t, path, fields); got == nil || !strings.Contains(got.Error(), part) {
			t.Errorf("got %v, want %q", got, part)
		}
	}
	f.refusals["Start"] = status.Error(codes.PermissionDenied, "permission denied")
	if _, err := f.look().post(t, path, fields); status.Code(err) != codes.PermissionDenied {
		t.Errorf("got %v, want that it is not permitted", err)
	}
	for _, change := range []func(url.Values){
		func(v url.Values) { v.Del("spec") }, func(v url.Values) { v.Set("spec", "{") }, func(v url.Values) { v.Set("spec", `{"evil":1}`) },
		func(v url.Values) { v.Set("spec", `{"remove":["1"]}`) }, func(v url.Values) { v.Set("spec", `{"expected":{}}`) },
		func(v url.Values) { v.Set("request", "0") }, func(v url.Values) { v.Set("request", "x") },
		func(v url.Values) { v.Set("spec", strings.Repeat(" ", 1<<20)+v.Get("spec")) },
	} {
		_, broken := form(t, f.look().get(t, "/changes/plan?verb=cordon&member=m3"))
		change(broken)
		if _, err := f.look().post(t, path, broken); err == nil || !strings.Contains(err.Error(), "This is no form of a plan") {
			t.Errorf("%.100v: got %v", broken, err)
		}
	}
	if len(f.started) > 0 {
		t.Errorf("got %v, want no job", f.started)
	}
}

// Ensure that a form keeps the answers that it was given.
func TestPages_plan_form(t *testing.T) {
	f := newCluster(t)
	text := f.look().get(t, "/changes/plan?verb=add&name=m4&peer-urls=http://a:1&learner=yes&protocol=joint&join-timeout=2h")
	want(t, "add", text, `value="m4"`, `value="http://a:1"`, `value="yes" checked`, `value="joint" checked`, `value="2h"`,
		"both sets of voters decide until a second entry", "!name=\"member\"")
	text = f.look().get(t, "/changes/plan?verb=change&remove=m2&add=m4%3Dhttp://a:1")
	want(t, "change", text, `name="remove" value="m2" aria-label="remove m2" checked`, "m4=http://a:1</textarea>",
		`name="demote" value="m2" aria-label="demote m2">`)
	f.cluster.Members[2].Name = "m1" // two of a name: each is named by its id
	text = f.look().get(t, "/changes/plan?verb=drain")
	want(t, "two of a name", text, `value="a1"`, `value="a3"`, `value="m2"`)
	if slices.Contains(strings.Fields(text), `value="m1"`) {
		t.Errorf("a name that two members have chooses one:\n%s", text)
	}
}
