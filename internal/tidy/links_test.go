package tidy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// TestLinks follows every relative link of every document.
func TestLinks(t *testing.T) {
	r := load(t)
	for _, text := range r.texts {
		name := filepath.Join("..", "..", filepath.FromSlash(text))
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(content), -1) {
			target := match[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which is not there", text, target)
			}
		}
	}
}

// TestDependencies wants every direct dependency in deps.txt with a sentence of reason, and no other.
func TestDependencies(t *testing.T) {
	root := filepath.Join("..", "..")
	modules, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := os.ReadFile(filepath.Join(root, "deps.txt"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(reasons)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) < 4 {
			t.Errorf("deps.txt: %s has no sentence of reason", fields[0])
		}
		known[fields[0]] = true
	}
	direct := map[string]bool{}
	for line := range strings.Lines(string(modules)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "v") || strings.Contains(line, "// indirect") {
			continue
		}
		direct[fields[0]] = true
		if !known[fields[0]] {
			t.Errorf("go.mod: %s is new: give its reason in deps.txt", fields[0])
		}
	}
	for name := range known {
		if !direct[name] {
			t.Errorf("deps.txt: %s is no direct dependency any more", name)
		}
	}
}
