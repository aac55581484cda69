package tidy_test

import (
	"bytes"
	"go/ast"
	"maps"
	"slices"
	"testing"
	"unicode/utf8"
)

// The limits: what one can read in one sitting, on one screen. Generated files are not counted.
const (
	maxFileLines   = 500
	maxFuncLines   = 70
	maxMethods     = 60  // of a type
	maxFields      = 25  // of a struct
	maxLineColumns = 128 // with a tab as four; aim at 120
	maxTestColumns = 170 // rows of tables
)

// outgrown says how much larger than its limit something is that is still to be split. A number may only become smaller,
// and what has come below its limit must be removed from here.
var outgrown = map[string]int{
	"internal/consensus/raft/cluster_test.go": 540,
	"internal/consensus/raft/random_test.go":  502,
	"internal/ctl/member_test.go":             555,
}

// TestSizes keeps packages, files, types, functions and lines readable.
func TestSizes(t *testing.T) {
	hold(t, linesKept)
}

func linesKept(r *tree) []string {
	var p report
	sizes := map[string]int{}
	for i := range r.files {
		f := &r.files[i]
		if f.made {
			continue
		}
		sizes[f.path] = f.lines()
		columns := maxLineColumns
		if f.test {
			columns = maxTestColumns
		}
		for n, line := range bytes.Split(f.source, []byte("\n")) {
			expanded := bytes.ReplaceAll(line, []byte("\t"), []byte("    "))
			if utf8.RuneCount(expanded) > columns {
				p.addf("%s:%d: line is wider than %d columns", f.path, n+1, columns)
			}
		}
		if !f.test {
			p.longFunctions(r, f)
		}
	}
	p.limit(sizes, maxFileLines, "lines: split it by duty")
	return p
}

func (p *report) longFunctions(r *tree, f *file) {
	for _, declaration := range f.syntax.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		n := r.fset.Position(function.End()).Line - r.at(function).Line + 1
		if n > maxFuncLines {
			p.addf("%s: %s has %d lines, more than %d", r.at(function), function.Name.Name, n, maxFuncLines)
		}
	}
}

// limit reports what is above a limit, unless it is known and has not grown.
func (p *report) limit(sizes map[string]int, limit int, what string) {
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		n, known := sizes[name], outgrown[name]
		switch {
		case n > max(limit, known):
			p.addf("%s has %d, more than %d %s", name, n, max(limit, known), what)
		case n <= limit && known > 0:
			p.addf("%s has %d, and is not beyond its limit any more: remove it from outgrown", name, n)
		}
	}
}
