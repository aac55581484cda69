package member_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
)

func TestRun_memberScale(t *testing.T) {
	f := startCluster(t)
	f.plan = &quoratepb.PlanResponse{}
	for i, name := range []string{"db-0", "db-1", "db-2", "db-3", "db-x", "db-03", "other-db-4", "db-4-x", ""} {
		f.cluster.Members = append(f.cluster.Members, &quoratepb.Member{Id: 0xb0 + uint64(i), Name: name})
	}
	const urls = " --peer-urls http://{}.db:2380"
	for _, row := range []struct {
		line   string
		plans  string // of each, who is removed and added
		status int
		says   string
	}{
		{"db --to 2 --dry-run", "-b2-b3;", 0, ""},
		{"db --to 3 --dry-run", "-b3;", 0, ""},
		{"db --to 3 --dry-run" + urls, "-b3;", 0, ""},
		{"db --to 4 --dry-run" + urls, "", 0, "nothing to do"},
		{"db --to 6 --dry-run", "", 0, "nothing to do"},
		{"db --to 6 --dry-run" + urls, "+db-4@http://db-4.db:2380+db-5@http://db-5.db:2380;", 0, ""},
		{"db --to 5 --yes" + urls, "+db-4@http://db-4.db:2380;", 0, "job 3f2a is queued"},
		{"d --to 1 --dry-run", "", 1, "no member is called d-0, d-1 and so on; there are m1"},
		{"db --to 0 --dry-run", "", 2, "--to N, from 1 to 99"},
		{"db --to 100 --dry-run", "", 2, "--to N, from 1 to 99"},
		{"db --dry-run", "", 2, "--to N, from 1 to 99"},
		{"db --to 5 --dry-run --peer-urls http://db:2380", "", 2, "write {} in the place of the name"},
		{"db --to 5 --dry-run --peer-urls {}:2380", "", 2, "--peer-urls"},
	} {
		f.planned = nil
		got := f.run(t, append([]string{"member", "scale"}, strings.Fields(row.line)...)...)
		if got.Status != row.status || !strings.Contains(got.Out+got.Err, row.says) {
			t.Errorf("%s: got status %d, %q, %q; want %d, %q", row.line, got.Status, got.Out, got.Err, row.status, row.says)
		}
		if plans := f.plannedText(); plans != row.plans {
			t.Errorf("%s: got the plans %q, want %q", row.line, plans, row.plans)
		}
	}
}

// plannedText writes who was to be removed and added by each plan that was asked for.
func (f *fakeCluster) plannedText() string {
	var b strings.Builder
	for _, spec := range f.planned {
		for _, id := range spec.Remove {
			fmt.Fprintf(&b, "-%x", id)
		}
		for _, n := range spec.Add {
			fmt.Fprintf(&b, "+%s@%s", n.Name, strings.Join(n.PeerUrls, ","))
		}
		b.WriteString(";")
	}
	return b.String()
}

// Ensure that surplus members are removed first, and missing ones are added afterwards, without a wait for their processes.
func TestRun_memberScale_both(t *testing.T) {
	f := startCluster(t)
	f.plan = &quoratepb.PlanResponse{}
	f.cluster.Members = []*quoratepb.Member{{Id: 0xb0, Name: "db-0"}, {Id: 0xb3, Name: "db-3"}}
	f.streams = []fakeStream{{events: []*quoratepb.Event{stateOf(f.jobEvent("running", "swap", 0)), f.jobEvent("done", "swap", 9)}}}
	f.afterStart = func() { f.cluster.Members = f.cluster.Members[:1] }
	got := f.run(t, strings.Fields("member scale db --to 2 --yes --peer-urls http://{}.db:2380")...)
	if want := "-b3;+db-1@http://db-1.db:2380;"; got.Status != 0 || f.plannedText() != want {
		t.Errorf("got status %d, the plans %q, %q, %q; want %q", got.Status, f.plannedText(), got.Out, got.Err, want)
	}
}

// Ensure that no member is added at a URL of another scheme than those of the set have: nobody would find it, and a cluster of one
// that was just recovered would have voters to come that never come.
func TestRun_memberScale_scheme(t *testing.T) {
	f := startCluster(t)
	f.plan = &quoratepb.PlanResponse{}
	f.cluster.Members = []*quoratepb.Member{{Id: 0xb1, Name: "db-1", PeerUrls: []string{"http://db-1.db:2380"}}}
	got := f.run(t, strings.Fields("member scale db --to 2 --yes --peer-urls https://{}.db:2380")...)
	if want := "write http://{}.db:2380"; got.Status != 1 || f.plannedText() != "" || !strings.Contains(got.Err, want) {
		t.Errorf("got status %d, the plans %q, %q; want %q", got.Status, f.plannedText(), got.Err, want)
	}
	got = f.run(t, strings.Fields("member scale db --to 2 --yes --peer-urls http://{}.db:2380")...)
	if want := "+db-0@http://db-0.db:2380;"; got.Status != 0 || f.plannedText() != want {
		t.Errorf("got status %d, the plans %q, %q; want %q", got.Status, f.plannedText(), got.Err, want)
	}
}
