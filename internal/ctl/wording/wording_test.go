package wording_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/wording"
)

var link = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// rows are those of the table of docs/membership.md that is below a line, without marks of code and links.
func rows(t *testing.T, below string) (out [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/membership.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), below+"\n")
	if !found {
		t.Fatalf("docs/membership.md has no line %q", below)
	}
	rest = link.ReplaceAllString(strings.ReplaceAll(rest, "`", ""), "$1")
	for line := range strings.SplitSeq(rest, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if strings.Trim(cells[0], "-") != "" {
			out = append(out, cells)
		}
	}
	return out
}

// Ensure that the command line, the console and the document describe the protocols and the phases in the same words.
func TestTables_document(t *testing.T) {
	var names []string
	documented := rows(t, "`--protocol` chooses how voters change. Use `auto` unless you have a reason not to.\n\n| | |")
	for i, p := range wording.Protocols {
		names = append(names, p.Name)
		if i >= len(documented) || documented[i][0] != p.Name || documented[i][1] != p.About {
			t.Errorf("protocol %s is %q, documented are %q", p.Name, p.About, documented)
		}
	}
	if !slices.Equal(names, consensus.ProtocolNames()) {
		t.Errorf("got the protocols %v, want %v", names, consensus.ProtocolNames())
	}
	phases := map[string][]string{}
	for _, row := range rows(t, "| phase | what happens | what it waits for |") {
		for name := range strings.SplitSeq(row[0], ", ") {
			phases[name] = row[1:]
		}
	}
	for _, p := range wording.Phases {
		if want := phases[p.Name]; !slices.Equal(want, []string{p.Does, p.WaitsFor}) {
			t.Errorf("phase %s is %q and waits for %q, documented is %q", p.Name, p.Does, p.WaitsFor, want)
		}
		delete(phases, p.Name)
	}
	if len(phases) > 0 {
		t.Errorf("documented, and not told: %v", phases)
	}
}

// Ensure that who cancels a job is told what becomes of it.
func TestCancelling(t *testing.T) {
	job := func(change func(*quoratepb.Job)) *quoratepb.Job {
		j := &quoratepb.Job{Id: 1, State: "running", Phase: "catch-up", Newcomers: []uint64{0xa4},
			Phases: []string{"make-room", "join", "start", "snapshot", "catch-up", "cordon", "swap", "decided", "settle"},
			Spec: &quoratepb.ChangeSpec{Kind: "change", Remove: []uint64{0xa2}, Cordon: []uint64{0xa1},
				Add: []*quoratepb.Newcomer{{Name: "m4", PeerUrls: []string{"http://a:1"}}}}}
		change(j)
		return j
	}
	names := wording.Names{0xa1: "m 1", 0xa2: "m2", 0xa4: "m4"}
	for _, c := range []struct {
		name      string
		change    func(*quoratepb.Job)
		has, lack string
	}{
		{"ended", func(j *quoratepb.Job) { j.State = "failed" }, "The job is failed already", "removed again"},
		{"asked before", func(j *quoratepb.Job) { j.CancelAsked = true }, "is being cancelled already", "removed again"},
		{"queued", func(j *quoratepb.Job) { j.State = "queued" }, "has not begun", "removed again"},
		{"decided", func(j *quoratepb.Job) { j.Phase = "decided" }, "too late", "removed again"},
		{"a drain", func(j *quoratepb.Job) { j.Spec.Kind = "drain" }, "A hand-over that has happened", "removed again"},
		{"newcomers", func(*quoratepb.Job) {}, "removed again: m4.", "stays cordoned"},
		{"a member that made room", func(*quoratepb.Job) {}, "cannot come back: m2.", "stays cordoned"},
		{"a newcomer without a name", func(j *quoratepb.Job) { j.Spec.Add[0].Name = "" }, "removed again: m4.", "\x00"},
		{"marks", func(j *quoratepb.Job) { j.Phase = "swap" }, "m 1 stays cordoned: `quorate member uncordon 'm 1'`", "\x00"},
	} {
		got := strings.Join(wording.Cancelling(job(c.change), names), "\n")
		if !strings.Contains(got, c.has) || strings.Contains(got, c.lack) {
			t.Errorf("%s: got %q, want %q in it", c.name, got, c.has)
		}
	}
}

// Ensure that words that name no member, or several, are refused with a sentence that says whom there is.
func TestFindMember(t *testing.T) {
	cluster := &quoratepb.Cluster{Members: []*quoratepb.Member{{Id: 0xa1, Name: "m1"}, {Id: 0xa2, Name: "a1"}, {Id: 0xa3}}}
	for word, want := range map[string]uint64{"m1": 0xa1, "A2": 0xa2, "163": 0xa3} {
		if m, err := wording.FindMember(cluster, word); err != nil || m.Id != want {
			t.Errorf("%s: got %v, %v", word, m, err)
		}
	}
	for word, want := range map[string]string{"m9": `no member is called "m9"; there are a1 (m1), a2 (a1), a3 ()`,
		"a1": `"a1" may be a1 (m1) or a2 (a1)`} {
		if _, err := wording.FindMember(cluster, word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", word, err, want)
		}
	}
}

// Ensure that a record says which method was called, where its operation has several.
func TestRecordAbout_method(t *testing.T) {
	for want, e := range map[string]audit.Entry{
		"Backup/Status":         {Op: "status", Method: "/quorate.v1.Backup/Status"},
		"Auth/UserAdd: user=bo": {Op: "auth", Method: "/etcdserverpb.Auth/UserAdd", About: "user=bo"},
		"Lock/Lock: /l":         {Op: "lock", Method: "/v3lockpb.Lock/Lock", EntryKeys: audit.EntryKeys{Key: "/l"}},
		"/k":                    {Op: "put", Method: "/etcdserverpb.KV/Put", EntryKeys: audit.EntryKeys{Key: "/k"}},
		"a.b":                   {Op: "later", Method: "a.b"}, "": {Op: "later"}, "q/M": {Op: "later", Method: "/p.q/M"},
	} {
		if got := wording.RecordAbout(&e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}
