package member_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// fileOf writes a file for apply and moves to its directory, so that messages name it without one.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("c.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "c.yaml"
}

const asItIs = `
members:
  - {name: m1, peer_urls: ["http://10.0.4.1:2380"]}
  - {name: m2, peer_urls: ["http://10.0.4.2:2380"]}
  - {name: m3, peer_urls: ["http://10.0.4.3:2380"]}
`

// Ensure that a file becomes the one change that makes the cluster so, and no change if it is so already.
func TestRun_memberApply(t *testing.T) {
	f := startCluster(t)
	f.cluster.Members = append(f.cluster.Members,
		&quoratepb.Member{Id: 0xa5, PeerUrls: []string{"http://10.0.4.5:2380"}, Role: quoratepb.Role_ROLE_LEARNER},
		&quoratepb.Member{Id: 0xa6, Name: "m6", PeerUrls: []string{"http://10.0.4.6:2380"}, Role: quoratepb.Role_ROLE_JOINING})
	const rest = `
  - {name: m5, peer_urls: ["http://10.0.4.5:2380"], learner: true}
  - {name: m6, peer_urls: ["http://10.0.4.6:2380"]}
`
	f.run(t, "member", "apply", fileOf(t, asItIs+rest[1:]), "--yes").Want(t, 0,
		"nothing to do: the members are as asked\n", "")
	f.run(t, "member", "apply", fileOf(t, asItIs), "--yes").Want(t, 0, "nothing to do: the members are as asked\n",
		"a5 is not in c.yaml and stays; --prune removes it\nm6 is not in c.yaml and stays; --prune removes it\n")
	if len(f.planned)+len(f.started) > 0 {
		t.Fatalf("got %d plans, %d jobs; want none", len(f.planned), len(f.started))
	}
	plan := strings.Replace(planText[1:], "7m12s)\n", "7m12s), 2 learners\n", 1)
	const another = `
members:
  - {name: m1, peer_urls: ["http://10.0.4.1:2380"], learner: true}
  - {name: m3, peer_urls: ["http://10.9.9.9:2380", "http://10.0.4.3:2380"]}
  - {name: m5, peer_urls: ["http://10.0.4.5:2380"]}
  - {name: m7, peer_urls: ["http://10.0.4.7:2380"], learner: true}
protocol: joint
`
	want := &quoratepb.ChangeSpec{Kind: "change", Protocol: "joint", Expected: f.cluster.Config, Demote: []uint64{0xa1},
		Promote: []uint64{0xa5}, Update: []*quoratepb.NewURLs{{Id: 0xa3, PeerUrls: []string{"http://10.0.4.3:2380", "http://10.9.9.9:2380"}}},
		Add: []*quoratepb.Newcomer{{Name: "m7", PeerUrls: []string{"http://10.0.4.7:2380"}, Learner: true}}}
	f.run(t, "member", "apply", fileOf(t, another), "--dry-run").Want(t, 0, plan, "m2 is not in c.yaml and stays")
	if diff := cmp.Diff(want, f.planned[0], protocmp.Transform()); diff != "" {
		t.Errorf("without prune (-want +got):\n%s", diff)
	}
	want.Remove, want.Protocol = []uint64{0xa2, 0xa6}, "activate"
	for _, args := range [][]string{{fileOf(t, another), "--prune"}, {fileOf(t, another+"prune: true\n")}} {
		f.planned = nil
		f.run(t, append([]string{"member", "apply", "--dry-run", "--protocol=activate"}, args...)...).Want(t, 0, plan, "")
		if diff := cmp.Diff(want, f.planned[0], protocmp.Transform()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", args, diff)
		}
	}
	ctltest.Run(t, t.Context(), ctltest.At(f.address), asItIs, "member", "apply", "-", "--yes").Want(t, 0,
		"nothing to do: the members are as asked\n", "a5 is not in - and stays")
}

// Ensure that names that mean two members, and a change under way, are refused rather than guessed at.
func TestRun_memberApply_doubt(t *testing.T) {
	f := startCluster(t)
	f.cluster.Members[1].Name = "m1"
	f.run(t, "member", "apply", fileOf(t, asItIs), "--yes").Want(t, command.StatusRefused, "", "a1 and a2 are both called m1")
	f.cluster.Joint = true
	f.run(t, "member", "apply", fileOf(t, asItIs), "--yes").Want(t, command.StatusRefused, "", "a change of the members is under way")
}

// Ensure that the file of another cluster changes nothing, and that --yes demands that a file says whose it is.
func TestRun_memberApply_otherCluster(t *testing.T) {
	f := startCluster(t)
	const demote = asItIs + "  - {name: m4, peer_urls: [\"http://10.0.4.4:2380\"], learner: true}\n"
	for _, args := range [][]string{{"--yes"}, {"--dry-run"}} {
		f.run(t, append([]string{"member", "apply", fileOf(t, "cluster: 77"+demote)}, args...)...).Want(t, command.StatusRefused, "",
			"the file is about cluster 77, and this is cluster ")
	}
	f.run(t, "member", "apply", fileOf(t, demote), "--yes").Want(t, command.StatusRefused, "", "add `cluster: ")
	if len(f.planned)+len(f.started) > 0 {
		t.Errorf("got %d plans, %d jobs; want none", len(f.planned), len(f.started))
	}
	own := fmt.Sprintf("cluster: %x", f.cluster.ClusterId)
	f.run(t, "member", "apply", fileOf(t, own+demote), "--yes", "--detach")
	if len(f.started) != 1 {
		t.Errorf("got %d jobs for a file of this cluster, want one", len(f.started))
	}
}

// Ensure that every fault of a file is told with its line or its member.
func TestRun_memberApply_faults(t *testing.T) {
	f := startCluster(t)
	const m1 = "members:\n  - name: m1\n    peer_urls: [http://a:1]\n"
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"unknown keys", m1 + "    lerner: true\nprunes: true\n",
			[]string{"c.yaml: line 4: unknown key lerner; did you mean learner?", "c.yaml: line 5: unknown key prunes; did you mean prune?"}},
		{"a value of the wrong kind", m1 + "    learner: perhaps\nprune: [1]\n",
			[]string{"c.yaml: line 4: must be true or false", "c.yaml: line 5: must be true or false"}},
		{"a URL that is no list", "members:\n  - name: m1\n    peer_urls: http://a:1\n", []string{"c.yaml: line 3: must be a list of texts"}},
		{"members that are no list", "members: m1\n", []string{"c.yaml: line 1: must be a list of members"}},
		{"a list alone", "- m1\n", []string{"c.yaml: line 1: must be a map of settings"}},
		{"a key twice", m1 + "prune: true\nprune: false\n", []string{"c.yaml: line 5: prune is given twice"}},
		{"no YAML", "members: [\n", []string{"c.yaml: line "}},
		{"nobody", "prune: true\n", []string{"c.yaml: lists no members"}},
		{"only learners", m1 + "    learner: true\n", []string{"lists only learners"}},
		{"several faults", m1 + "  - name: m1\n    peer_urls: [http://a:1]\n  - peer_urls: [a]\n  - name: m4\nprotocol: paxos\n",
			[]string{"member 2 (m1) is listed twice", "member 2 (m1) has the URL http://a:1 of another member", "member 3 has no name",
				`member 3: peer_urls: "a" lacks a scheme`, "member 4 (m4): peer_urls: a member needs a peer URL", `protocol "paxos" is unknown`}},
		{"an experiment", m1 + "protocol: activate-switched\n",
			[]string{"is an experiment that no cluster runs: play it with `quoratesim"}},
	} {
		got := f.run(t, "member", "apply", fileOf(t, tc.text), "--yes")
		for _, want := range tc.want {
			if got.Status != command.StatusUsage || !strings.Contains(got.Err, want) {
				t.Errorf("%s: got status %d, %q; want %q", tc.name, got.Status, got.Err, want)
			}
		}
	}
	f.run(t, "member", "apply", filepath.Join(t.TempDir(), "absent"), "--yes").Want(t, command.StatusUsage, "",
		"absent cannot be read: no such file or directory")
}

// Ensure that a file says who is cordoned only where it says so: without the line a member stays as it is.
func TestRun_memberApply_cordoned(t *testing.T) {
	f := startCluster(t)
	f.cluster.Members[1].Cordoned = true
	f.run(t, "member", "apply", fileOf(t, asItIs), "--yes").Want(t, 0, "nothing to do: the members are as asked\n", "")
	const marks = `
members:
  - {name: m1, peer_urls: ["http://10.0.4.1:2380"], cordoned: true}
  - {name: m2, peer_urls: ["http://10.0.4.2:2380"], cordoned: false}
  - {name: m3, peer_urls: ["http://10.0.4.3:2380"], cordoned: false}
  - {name: m7, peer_urls: ["http://10.0.4.7:2380"], cordoned: true}
`
	if got := f.run(t, "member", "apply", fileOf(t, marks), "--dry-run"); got.Status != 0 {
		t.Fatalf("got status %d, %s", got.Status, got.Err)
	}
	want := &quoratepb.ChangeSpec{Kind: "change", Protocol: "auto", Expected: f.cluster.Config, Cordon: []uint64{0xa1},
		Uncordon: []uint64{0xa2}, Add: []*quoratepb.Newcomer{{Name: "m7", PeerUrls: []string{"http://10.0.4.7:2380"}, Cordoned: true}}}
	if diff := cmp.Diff(want, f.planned[0], protocmp.Transform()); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}
