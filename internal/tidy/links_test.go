package tidy_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	anchor  = regexp.MustCompile(`\]\(([^)#\s]*)#([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	unnamed = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`) // what a heading's anchor leaves out
)

// TestLinks follows every relative link of every document, to its heading.
func TestLinks(t *testing.T) {
	check(t, checkLinks)
	check(t, checkAnchors)
}

func checkAnchors(r *tree) []string {
	var p report
	anchors := map[string][]string{}
	for _, doc := range r.texts {
		for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(doc.content, ""), -1) {
			words := link.ReplaceAllString(match[1], "")
			name := strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(words), ""), " ", "-")
			anchors[doc.path] = append(anchors[doc.path], name)
		}
	}
	for _, doc := range r.texts {
		for _, match := range anchor.FindAllStringSubmatch(doc.content, -1) {
			target := doc.path
			if match[1] != "" {
				target = path.Join(path.Dir(doc.path), match[1])
			}
			if strings.HasSuffix(target, ".md") && !strings.Contains(match[1], "://") && !slices.Contains(anchors[target], match[2]) {
				p.addf("%s links to #%s of %s, and there is no such heading", doc.path, match[2], target)
			}
		}
	}
	return p
}

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

// TestDependencies wants every direct dependency in deps.txt once, with a sentence of reason, and no other. One that is for tests
// is imported by tests.
func TestDependencies(t *testing.T) {
	check(t, checkDependencies)
	check(t, checkTestDependencies)
}

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
		if known[fields[0]] {
			p.addf("deps.txt: %s is there twice", fields[0])
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

func checkTestDependencies(r *tree) []string {
	var p report
	var modules, forTests []string
	for line := range strings.Lines(r.read("deps.txt")) {
		name, reason, _ := strings.Cut(line, " ")
		modules = append(modules, name)
		if strings.HasPrefix(strings.TrimSpace(reason), "tests:") {
			forTests = append(forTests, name)
		}
	}
	for i := range r.files {
		f := &r.files[i]
		if f.test || strings.HasPrefix(f.dir, "test/") || strings.HasSuffix(f.dir, "test") {
			continue
		}
		for _, imported := range f.imports() {
			longest := "" // a module whose name begins with another one's is not that one
			for _, name := range modules {
				if len(name) > len(longest) && (imported == name || strings.HasPrefix(imported, name+"/")) {
					longest = name
				}
			}
			if slices.Contains(forTests, longest) {
				p.addf("deps.txt: %s is said to be for tests, and %s imports it", longest, f.path)
			}
		}
	}
	return p
}
