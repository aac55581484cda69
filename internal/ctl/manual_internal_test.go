package ctl

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/ctl/command"
)

// Ensure that there is a page for the member and one for each command of ours, which have their flags and no line that a
// formatter would take for a request of its own.
func TestDocs_man(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	var errs bytes.Buffer
	if status := Run(t.Context(), []string{"docs", "man", dir}, command.Streams{Err: &errs}); status != 0 {
		t.Fatalf("status %d: %s", status, &errs)
	}
	for name, wants := range map[string][]string{
		"quorate":          {`\-\-listen\-client\-urls`, "\nsnapshot    ", "4    the cluster removed"},
		"quorate-snapshot": {`.SH "quorate snapshot save`, `\fB\-\-endpoints\fP`},
		"quorate-version":  {`\fB\-o, \-\-output\fP`},
	} {
		content, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(content), want) {
				t.Errorf("%s.1 has no %q", name, want)
			}
		}
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	request := regexp.MustCompile(`^(\.(TH|SH|TP|PP|nf|fi)\b|[^.'])`)
	for _, path := range pages {
		content, _ := os.ReadFile(path)
		for line := range strings.Lines(string(content)) {
			if line != "\n" && !request.MatchString(line) {
				t.Errorf("%s: %q", filepath.Base(path), line)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "quorate-docs.1")); err == nil {
		t.Error("a command that is hidden has a page")
	}
	if ours(newDocs(command.Streams{})) {
		t.Error("the help has the command that is for packages")
	}
}
