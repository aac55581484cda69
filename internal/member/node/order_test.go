package node_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// Ensure that the node performs every field of raft.Output, and in the order in which the struct has them: each field states
// there why it has its place. Fields that one statement performs together are one step; those that PersistOf reads are part of the
// statement that calls it.
func TestNode_perform_order(t *testing.T) {
	set := token.NewFileSet()
	parse := func(path string) *ast.File {
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	var fields []string
	ast.Inspect(parse("../../consensus/raft/output.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == "Output" {
			for _, field := range spec.Type.(*ast.StructType).Fields.List {
				for _, name := range field.Names {
					fields = append(fields, name.Name)
				}
			}
		}
		return true
	})
	var perform, persistOf *ast.FuncDecl
	for _, declaration := range parse("node.go").Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Name.Name == "perform" {
			perform = f
		} else if ok && f.Name.Name == "PersistOf" {
			persistOf = f
		}
	}
	if len(fields) < 15 || perform == nil || persistOf == nil {
		t.Fatalf("%d fields of Output, perform: %v, PersistOf: %v", len(fields), perform, persistOf)
	}
	var performed []string
	for _, statement := range perform.Body.List {
		var places []int
		var read func(n ast.Node) bool
		read = func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if of, ok := n.X.(*ast.Ident); ok && of.Name == "out" {
					places = append(places, slices.Index(fields, n.Sel.Name))
				}
			case *ast.CallExpr:
				if of, ok := n.Fun.(*ast.Ident); ok && of.Name == "PersistOf" {
					ast.Inspect(persistOf.Body, read)
				}
			}
			return true
		}
		ast.Inspect(statement, read)
		slices.Sort(places)
		for _, at := range slices.Compact(places) {
			performed = append(performed, fields[at])
		}
	}
	if !slices.Equal(performed, fields) {
		t.Errorf("performed in the order\n%v, the struct has\n%v", performed, fields)
	}
}
