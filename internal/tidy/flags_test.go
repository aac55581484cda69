package tidy_test

import (
	"go/ast"
	"strings"
	"testing"
)

// TestFlags requires that every setting with an effect is read outside of internal/config: its field, or a method of Config
// that reads the field. Settings without effect are marked in the table, and the help says why.
func TestFlags(t *testing.T) { check(t, checkFlagsRead) }

func checkFlagsRead(r *tree) []string {
	var p report
	fields, readBy, read := map[string]bool{}, map[string][]string{}, map[string]bool{}
	for i := range r.files {
		f := &r.files[i]
		switch {
		case f.test:
		case f.dir != "internal/config":
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					read[s.Sel.Name] = true
				}
				return true
			})
		default:
			inConfig(f, fields, readBy)
		}
	}
	for name := range fields {
		used := read[name]
		for _, method := range readBy[name] {
			used = used || read[method]
		}
		if !used {
			p.addf("config.%s is set by a flag that nothing reads: honour it, refuse it, or make its row one without effect",
				name)
		}
	}
	return p
}

// inConfig notes the fields that the table of settings fills, and which functions of the package read a field.
func inConfig(f *file, fields map[string]bool, readBy map[string][]string) {
	for _, decl := range f.syntax.Decls {
		function, isFunction := decl.(*ast.FuncDecl)
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.UnaryExpr: // &c.Field, in the table
				if s, ok := n.X.(*ast.SelectorExpr); ok && !isFunction && s.Sel.IsExported() &&
					!strings.HasSuffix(s.Sel.Name, "TLS") {
					fields[s.Sel.Name] = true
				}
			case *ast.SelectorExpr:
				if isFunction && function.Name.IsExported() {
					readBy[n.Sel.Name] = append(readBy[n.Sel.Name], function.Name.Name)
				}
			}
			return true
		})
	}
}
