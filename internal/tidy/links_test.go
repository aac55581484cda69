package tidy_test

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// TestLinks follows every relative link of every document.
func TestLinks(t *testing.T) { check(t, checkLinks) }

func checkLinks(r *tree) []string {
	var p report
	for _, doc := range r.texts {
		for _, match := range link.FindAllStringSubmatch(doc.content, -1) {
			target := match[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			if !r.exists(path.Join(path.Dir(doc.path), target)) {
				p.addf("%s links to %s, which is not there", doc.path, target)
			}
		}
	}
	return p
}

// TestDependencies wants every direct dependency in deps.txt with a sentence of reason, and no other.
func TestDependencies(t *testing.T) { check(t, checkDependencies) }

func checkDependencies(r *tree) []string {
	var p report
	modules, reasons := r.read("go.mod"), r.read("deps.txt")
	known := map[string]bool{}
	for line := range strings.Lines(reasons) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) < 4 {
			p.addf("deps.txt: %s has no sentence of reason", fields[0])
		}
		known[fields[0]] = true
	}
	direct := map[string]bool{}
	for line := range strings.Lines(modules) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "v") || strings.Contains(line, "// indirect") {
			continue
		}
		direct[fields[0]] = true
		if !known[fields[0]] {
			p.addf("go.mod: %s is new: give its reason in deps.txt", fields[0])
		}
	}
	for name := range known {
		if !direct[name] {
			p.addf("deps.txt: %s is no direct dependency any more", name)
		}
	}
	return p
}
