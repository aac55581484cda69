package node_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// Ensure that the node performs every field of raft.Output, and in the order in which the struct has them: each field states
// there why it has its place. Fields that one statement performs together are one step.
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
	var perform *ast.FuncDecl
	for _, declaration := range parse("node.go").Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Name.Name == "perform" {
			perform = f
		}
	}
	if len(fields) < 15 || perform == nil {
		t.Fatalf("%d fields of Output, perform: %v", len(fields), perform)
	}
	var performed []string
	for _, statement := range perform.Body.List {
		var places []int
		ast.Inspect(statement, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := selector.X.(*ast.Ident); ok && of.Name == "out" {
				places = append(places, slices.Index(fields, selector.Sel.Name))
			}
			return true
		})
		slices.Sort(places)
		for _, at := range slices.Compact(places) {
			performed = append(performed, fields[at])
		}
	}
	if !slices.Equal(performed, fields) {
		t.Errorf("performed in the order\n%v, the struct has\n%v", performed, fields)
	}
}
