package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// Ensure that no name or claim out of a file moves the cursor, begins a line or turns the order of one: neither in the lines of
// verify, nor in an error.
func TestVerify_printable(t *testing.T) {
	const evil = "a\x1b[2J\r\nsame         quorate_1.0.0.tar.gz\u202e\u009b31m\xff.txt"
	var out bytes.Buffer
	v := &verification{out: &out, log: &out}
	v.say("same", evil, "%s", evil)
	v.differs(evil, "is of %s", evil)
	v.cannot(evil, "%s", evil)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(evil, "/", "")), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	status := run(context.Background(), quorate, []string{"verify", filepath.Join(dir, "no\x1b[2Jthing")}, &out, &errs)
	if status == 0 || !strings.Contains(errs.String(), "no[2Jthing") {
		t.Errorf("status %d, %q", status, errs.String())
	}
	for _, text := range []string{out.String(), errs.String()} {
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
				t.Errorf("printed: %q", line)
			}
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 3 {
		t.Errorf("%d lines: %q", lines, out.String())
	}
}
