package tidy_test

import (
	"bytes"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The limits: what one can read in one sitting, on one screen. Nobody is exempt by name.
const (
	maxFileLines     = 800
	maxTestFileLines = 1200
	maxFuncLines     = 70
	maxLineColumns   = 128 // with a tab as four; aim at 120
	maxTestColumns   = 170 // rows of tables
)

// TestSizes keeps files, functions and lines readable.
func TestSizes(t *testing.T) {
	r := load(t)
	for i := range r.files {
		f := &r.files[i]
		if f.made {
			continue
		}
		limit, columns := maxFileLines, maxLineColumns
		if f.test {
			limit, columns = maxTestFileLines, maxTestColumns
		}
		if n := f.lines(); n > limit {
			t.Errorf("%s has %d lines, more than %d: split it by duty", f.path, n, limit)
		}
		for n, line := range bytes.Split(f.source, []byte("\n")) {
			expanded := bytes.ReplaceAll(line, []byte("\t"), []byte("    "))
			if utf8.RuneCount(expanded) > columns {
				t.Errorf("%s:%d: line is wider than %d columns", f.path, n+1, columns)
			}
		}
		if f.test {
			continue
		}
		for _, declaration := range f.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			n := r.fset.Position(function.End()).Line - r.fset.Position(function.Pos()).Line + 1
			if n > maxFuncLines {
				at := r.fset.Position(function.Pos())
				t.Errorf("%s: %s has %d lines, more than %d", at, function.Name.Name, n, maxFuncLines)
			}
		}
	}
}

// bannedNames say nothing about what is inside.
var bannedNames = []string{"util", "utils", "common", "helper", "helpers", "types", "base", "manager", "impl", "data",
	"info", "new", "v2", "misc"}

// TestPackages wants a doc of some length for each package, in doc.go, and a name that means something.
func TestPackages(t *testing.T) {
	r := load(t)
	documented := map[string]bool{}
	var dirs []string
	for i := range r.files {
		f := &r.files[i]
		if f.test {
			continue
		}
		if !slices.Contains(dirs, f.dir) {
			dirs = append(dirs, f.dir)
		}
		if f.syntax.Doc != nil && len(f.syntax.Doc.Text()) > 80 {
			documented[f.dir] = true
		}
	}
	for _, dir := range dirs {
		if !documented[dir] {
			t.Errorf("%s: package has no doc: say in doc.go what it is, what it is not, and its laws", dir)
		}
		if slices.Contains(bannedNames, path.Base(dir)) {
			t.Errorf("%s: the name says nothing: name the duty", dir)
		}
	}
}

// TestLeftovers finds notes to self, and skipped tests that would hide a bug.
func TestLeftovers(t *testing.T) {
	r := load(t)
	marks := []string{"TO" + "DO", "FIX" + "ME", "X" + "XX"}
	for i := range r.files {
		f := &r.files[i]
		for _, group := range f.syntax.Comments {
			for _, mark := range marks {
				if strings.Contains(group.Text(), mark) {
					t.Errorf("%s: %s: do it, or write down in an issue why not", r.fset.Position(group.Pos()), mark)
				}
			}
		}
		if f.test && f.dir != "internal/tidy" && bytes.Contains(f.source, []byte("time.Sleep(")) &&
			!strings.HasPrefix(f.dir, "test/") {
			t.Errorf("%s: a test sleeps: wait for what it waits for", f.path)
		}
	}
}
