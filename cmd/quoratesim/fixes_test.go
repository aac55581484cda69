package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStart_fixes(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"help", []string{"fixes", "--help"}, 0, "-only"},
		{"a stray argument", []string{"fixes", "now"}, 2, `"now"`},
		{"no such row", []string{"fixes", "--only", "the weather"}, 2, "the weather"},
		{"a row of the model", []string{"fixes", "--only", "recovery-drops"}, 0, "| L1 |"},
		{"rows of operators", []string{"fixes", "--only", "NobodyPasses"}, 0, "| queue |"},
		{"too little time", []string{"fixes", "--only", "own-lease-ticks", "--for", "1ns"}, 1, "NOT FOUND"},
	} {
		var out, diary bytes.Buffer
		code := start(tc.args, &out, &diary)
		if text := out.String() + diary.String(); code != tc.code || !strings.Contains(text, tc.want) {
			t.Errorf("%s: exit %d, want %d with %q in\n%s", tc.name, code, tc.code, tc.want, text)
		}
	}
}

// Ensure that the table in docs/simulation.md has every row, and that the tests which it names exist.
func TestFixes_documented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fixes() {
		if row := strings.TrimSuffix(m.row(""), " |"); !strings.Contains(string(doc), strings.TrimSpace(row)) {
			t.Errorf("docs/simulation.md lacks the row\n%s", m.row("TIME"))
		}
	}
	tests := allTests(t)
	for _, u := range unfounds {
		if row := u.row(); !strings.Contains(string(doc), row) {
			t.Errorf("docs/simulation.md lacks the row\n%s", row)
		}
		for _, name := range u.tests {
			if !strings.Contains(tests, "func "+name+"(t") {
				t.Errorf("%s: there is no test %s", u.wrong, name)
			}
		}
	}
}

// allTests returns the text of all tests.
func allTests(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
