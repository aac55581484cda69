package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that a line of the page that is taken for the password changes neither root nor the Secret: whoever pastes all blocks at
// once gives the line behind `read` to it.
func TestRotation_pasted(t *testing.T) {
	c := &cluster{ground: &ground{docs: "../../docs"}, namespace: "here"}
	blocks, err := c.script(c.rotation())
	if err != nil {
		t.Fatal(err)
	}
	typed := strings.Join(blocks, "")
	pasted := strings.Replace(typed, "new='"+nextPassword+"'", typesPassword, 1)
	for _, row := range []struct {
		name, script string
		changes      bool
	}{{"typed", typed, true}, {"pasted", pasted, false}} {
		directory := t.TempDir()
		kubectl := "#!/bin/sh\necho \"$@\" >> " + directory + "/log\ncase \"$*\" in *stdin*|*passwd*) cat >> " + directory + "/log;; esac\n"
		if err := os.WriteFile(filepath.Join(directory, "kubectl"), []byte(kubectl), 0o755); err != nil {
			t.Fatal(err)
		}
		shell := exec.Command("bash")
		shell.Dir, shell.Env = directory, []string{"PATH=" + directory + ":" + os.Getenv("PATH")}
		shell.Stdin = strings.NewReader(row.script)
		said, _ := shell.CombinedOutput() // a line that cannot be read fails the pasted one
		log, err := os.ReadFile(filepath.Join(directory, "log"))
		if err != nil {
			t.Fatalf("%s: %v: %s", row.name, err, said)
		}
		for _, words := range []string{"user passwd", "patch secret"} {
			if strings.Contains(string(log), words) != row.changes {
				t.Errorf("%s: %q was run: %v\n%s\n%s", row.name, words, !row.changes, log, said)
			}
		}
	}
}
