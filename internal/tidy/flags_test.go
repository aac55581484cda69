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
	p := checkGatesRead(r)
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

// checkGatesRead requires that a feature gate without a reason for having no effect is asked for somewhere.
func checkGatesRead(r *tree) report {
	var p report
	asked := map[string]bool{}
	var inEffect []string
	for i := range r.files {
		f := &r.files[i]
		if f.test {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				s, ok := n.Fun.(*ast.SelectorExpr)
				if ok && s.Sel.Name == "Enabled" && len(n.Args) == 1 && f.dir != "internal/config" {
					if name, ok := n.Args[0].(*ast.BasicLit); ok {
						asked[name.Value] = true
					}
				}
			case *ast.ValueSpec:
				if f.dir == "internal/config" && len(n.Names) == 1 && n.Names[0].Name == "gates" {
					inEffect = gatesInEffect(n)
				}
			}
			return true
		})
	}
	for _, name := range inEffect {
		if !asked[name] {
			p.addf("the feature gate %s is read by nothing: honour it, or say in its row why it has no effect", name)
		}
	}
	return p
}

// gatesInEffect returns the names in the rows of the table of gates whose reason is empty.
func gatesInEffect(table *ast.ValueSpec) []string {
	var names []string
	for _, value := range table.Values {
		rows, ok := value.(*ast.CompositeLit)
		if !ok {
			continue
		}
		for _, element := range rows.Elts {
			row, ok := element.(*ast.CompositeLit)
			if !ok || len(row.Elts) != 3 {
				continue
			}
			name, named := row.Elts[0].(*ast.BasicLit)
			if reason, ok := row.Elts[2].(*ast.BasicLit); ok && named && reason.Value == `""` {
				names = append(names, name.Value)
			}
		}
	}
	return names
}
