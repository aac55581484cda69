package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Ensure that bash can read what scenarios type of the page about releases, that no name of the page is left in it, and that no claim
// is deleted, and no set of pods stopped, before claims or their volumes are kept.
func TestProcedures(t *testing.T) {
	c := &cluster{ground: &ground{docs: "../../docs", charts: "charts"}, namespace: "here", class: "network", subject: chart{}}
	for _, p := range []procedure{c.growth(), c.recovery(""), c.restoration(""), c.stopping(), c.pastRestoration("place", "time", "next"),
		c.looking(), c.wayBack([]string{"v0", "v1", "v2"}, "place"), c.proving("place", "time"),
		c.rotation(), c.drawing(), c.replacing()} {
		all, err := c.script(p)
		if err != nil {
			t.Errorf("%s: %v", p.heading, err)
			continue
		}
		script := strings.Join(all, "")
		for _, name := range []string{"db-quorate", "prod", "example.com", "v1.1.0", "deploy/charts", "s3://", " VOLUME\n"} {
			if strings.Contains(script, name) {
				t.Errorf("%s: the script names %s:\n%s", p.heading, name, script)
			}
		}
		read := exec.Command("bash", "-n")
		read.Stdin = strings.NewReader(script)
		if out, err := read.CombinedOutput(); err != nil {
			t.Errorf("%s: bash cannot read it: %v\n%s\n%s", p.heading, err, out, script)
		}
		before, sofar := "", ""
		for line := range strings.Lines(script) {
			deletes := strings.Contains(line, "kubectl delete pvc") || strings.Contains(line, "$claim") && strings.Contains(line, "delete")
			if deletes && !strings.HasSuffix(before, "&&\n") {
				t.Errorf("%s: it deletes a claim whether or not the line before succeeds: %s", p.heading, line)
			}
			stops := strings.Contains(line, "--replicas=0") ||
				strings.Contains(line, "delete statefulset") && !strings.Contains(line, "--cascade=orphan")
			if stops && !strings.Contains(sofar, "Retain") {
				t.Errorf("%s: it stops all members, and Kubernetes may delete their claims: %s", p.heading, line)
			}
			before, sofar = line, sofar+line
		}
	}
}

// Ensure that the way back from a takeover leaves etcd's files where etcd finds them, also where it ended in the middle, is taken
// again, or meets a member that has none.
func TestRenaming(t *testing.T) {
	for _, row := range []struct {
		name   string
		before []string
		want   string
		says   string
	}{
		{"a member that was taken over", []string{"member/quorate", "member.etcd/etcd"}, "member.quorate/quorate member/etcd", "is back"},
		{"ended in the middle", []string{"member.quorate/quorate", "member.etcd/etcd"}, "member.quorate/quorate member/etcd", "is back"},
		{"again", []string{"member.quorate/quorate", "member/etcd"}, "member.quorate/quorate member/etcd", "was back before"},
		{"lost since", []string{"member/quorate"}, "member.quorate/quorate", "has no files of etcd"},
		{"lost since, and again", []string{"member.quorate/quorate"}, "member.quorate/quorate", "has no files of etcd"},
		{"lost since, and never started", nil, "", "has no files of etcd"},
	} {
		claim := t.TempDir()
		for _, name := range row.before {
			path := filepath.Join(claim, "data", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		command, err := renaming("../../docs", claim)
		if err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command(command[0], command[1:]...).CombinedOutput()
		found, _ := filepath.Glob(filepath.Join(claim, "data", "m*", "*"))
		for i := range found {
			found[i] = strings.TrimPrefix(found[i], filepath.Join(claim, "data")+"/")
		}
		slices.Sort(found)
		if got := strings.Join(found, " "); err != nil || got != row.want || strings.TrimSpace(string(said)) != row.says {
			t.Errorf("%s: %v, it said %q and left %s; want %q and %s", row.name, err, said, got, row.says, row.want)
		}
	}
}
