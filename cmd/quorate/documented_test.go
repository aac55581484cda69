package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// words are those of a line as a shell takes them apart, as far as documents use it.
var words = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s]+`)

// documented returns the commands of blocks of code in a document, without a comment at their ends.
func documented(t *testing.T, file string) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(text), "\n```") {
		if i%2 == 0 {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			command, found := strings.CutPrefix(line, "quorate ")
			if !found || strings.HasPrefix(command, "-") || strings.ContainsAny(command, "…|&;<>$`[") {
				continue
			}
			var args []string
			for _, word := range words.FindAllString(command, -1) {
				args = append(args, strings.Trim(word, `'"`))
			}
			all = append(all, args)
		}
	}
	return all
}

// Ensure that the commands which documents show are commands, with flags that they have.
func TestDocumentedCommands(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range append(files, "../../README.md") {
		for _, args := range documented(t, file) {
			count++
			if status, out, errs := quorate(t, append(args, "--help")...); status != 0 || !strings.Contains(out, "Usage:") {
				t.Errorf("%s: quorate %s: %d %.200s", filepath.Base(file), strings.Join(args, " "), status, errs)
			}
		}
	}
	if count < 30 {
		t.Errorf("found %d commands only", count)
	}
	if status, _, _ := quorate(t, "backup", "list", "--no-such-flag", "--help"); status == 0 {
		t.Error("a flag that does not exist is taken")
	}
}
