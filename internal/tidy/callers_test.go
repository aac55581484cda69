package tidy_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// calledFromOutside are methods that the standard library, gRPC or another library calls by an interface of its own.
var calledFromOutside = []string{
	"String", "Error", "Unwrap", "Is", "As", "LogValue", "Format", "Type", "Set", "MarshalJSON", "UnmarshalJSON",
	"MarshalText", "UnmarshalText", "Len", "Less", "Swap", "Push", "Pop", "ServeHTTP", "Read", "Write", "Close",
	"Describe", "Collect", "GRPCStatus",
}

// testsOnly is what tests of other packages need of a package, and why.
var testsOnly = map[string]string{
	"Lagging":         "a test that compares watchers must wait until none is behind",
	"ClientAddresses": "a server that listens on any free port is asked which one it got",
	"RefusedMessages": "scripts and tests of the core look at what was refused",
	"All":             "the simulator's tests walk all negative controls",
	"FromPebble":      "package filestest makes file systems for tests of Pebble's",
	"Replay":          "a test replays a finding under the rules that it should not break",
	"LastHeard":       "a test of the member asks when a client was heard",
	"ModeOff":         "the zero value is off too; the name is that of the setting",
}

// TestCallers requires that each exported name is used outside of its package, by code that is not a test.
func TestCallers(t *testing.T) { check(t, checkCallers) }

// checkCallers compares names alone: a declaration whose name is used for something else counts as used.
func checkCallers(r *tree) []string {
	var p report
	users := map[string][]string{} // name -> packages that use it, each once
	use := func(name, dir string) {
		if !slices.Contains(users[name], dir) {
			users[name] = append(users[name], dir)
		}
	}
	services := servicesOf(r)
	var exports []export
	for i := range r.files {
		f := &r.files[i]
		if f.test || f.dir == "internal/tidy" || strings.HasSuffix(f.dir, "test") {
			continue
		}
		declared := map[*ast.Ident]bool{}
		for _, e := range exportsOf(f) {
			declared[e.name] = true
			if e.implements || services[f.dir+"."+e.of] {
				continue
			}
			if !f.made && (strings.HasPrefix(f.dir, "internal/") || strings.HasPrefix(f.dir, "cmd/")) {
				exports = append(exports, e)
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && !declared[id] {
				use(id.Name, f.dir)
			}
			return true
		})
	}
	for _, e := range exports {
		_, known := testsOnly[e.name.Name]
		switch {
		case known, e.method && slices.Contains(calledFromOutside, e.name.Name):
		case len(users[e.name.Name]) == 0:
			p.addf("%s: %s has no caller outside of tests: remove it, or move it to the tests", r.at(e.name), e.name.Name)
		}
	}
	return p
}

// servicesOf returns the types that gRPC calls: they embed a type of the generated code.
func servicesOf(r *tree) map[string]bool {
	services := map[string]bool{}
	for i := range r.files {
		f := &r.files[i]
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range fields.Fields.List {
				s, ok := field.Type.(*ast.SelectorExpr)
				if ok && len(field.Names) == 0 &&
					(strings.HasPrefix(s.Sel.Name, "Unsafe") || strings.HasPrefix(s.Sel.Name, "Unimplemented")) {
					services[f.dir+"."+spec.Name.Name] = true
				}
			}
			return true
		})
	}
	return services
}

// export is a declaration with an exported name.
type export struct {
	name       *ast.Ident
	method     bool
	of         string // of a method: its type
	implements bool   // the comment names the interface of another library that it implements
}

func exportsOf(f *file) []export {
	var exports []export
	add := func(name *ast.Ident, d *ast.FuncDecl) {
		if !name.IsExported() {
			return
		}
		e := export{name: name}
		if d != nil && d.Recv != nil {
			e.method, e.of, e.implements = true, receiver(d), strings.Contains(d.Doc.Text(), "implements")
		}
		exports = append(exports, e)
	}
	for _, declaration := range f.syntax.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			add(d.Name, d)
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					add(s.Name, nil)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						add(name, nil)
					}
				}
			}
		}
	}
	return exports
}
