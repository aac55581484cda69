package decide_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that a command has its namespace, behind the verb.
func TestKubectl(t *testing.T) {
	for line, want := range map[string]string{
		"delete pod m1 --force": "kubectl delete -n ns pod m1 --force",
		"quorate kv doctor":     "kubectl quorate -n ns kv doctor",
	} {
		if got := decide.Kubectl("ns", "%s", line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// Ensure that no sentence for people has a command of its own, which may lack the namespace.
func TestKubectl_alone(t *testing.T) {
	own := regexp.MustCompile("[\"`](kubectl|.*kubectl (annotate|delete|patch|logs|apply|label)) ")
	for _, name := range []string{"decide", "members", "controller", "objects"} {
		files, err := filepath.Glob(filepath.Join("..", name, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no files: %v", name, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				code, _, _ := strings.Cut(line, "//")
				if !strings.HasSuffix(file, "_test.go") && filepath.Base(file) != "kubectl.go" && own.MatchString(code) {
					t.Errorf("%s: write it by decide.Kubectl: %s", file, line)
				}
			}
		}
	}
}
