package tidy_test

import (
	"bytes"
	"go/ast"
	"maps"
	"slices"
	"testing"
	"unicode/utf8"
)

// The limits. Generated files are not counted.
const (
	maxFileLines   = 500
	maxFuncLines   = 70
	maxLineColumns = 128 // with a tab as four; aim at 120
	maxTestColumns = 170 // rows of tables
)

// outgrown has the size of what is above its limit and still to be split. A number may only become smaller; a row whose size
// has come below the limit must be removed.
var outgrown = map[string]int{}

// TestSizes keeps files, functions and lines readable.
func TestSizes(t *testing.T) {
	check(t, checkLines)
}

func checkLines(r *tree) []string {
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
			if bytes.HasPrefix(bytes.TrimLeft(line, "\t"), []byte("// +kubebuilder:")) {
				continue // a marker is one line, whatever it says
			}
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

// receiver is the name of the type whose method d is.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
