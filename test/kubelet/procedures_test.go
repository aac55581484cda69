package main

import (
	"os/exec"
	"strings"
	"testing"
)

// Ensure that bash can read what scenarios type of the page about releases, that no name of the page is left in it, and that no claim
// is deleted whose volume may not have been kept.
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
		before := ""
		for line := range strings.Lines(script) {
			deletes := strings.Contains(line, "kubectl delete pvc") || strings.Contains(line, "$claim") && strings.Contains(line, "delete")
			if deletes && !strings.HasSuffix(before, "&&\n") {
				t.Errorf("%s: it deletes a claim whether or not the line before succeeds: %s", p.heading, line)
			}
			before = line
		}
	}
}
