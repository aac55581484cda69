package tidy_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// owned is state of a package that only some of its files may write: a reader finds all writers there.
type owned struct {
	dir, field string
	owners     []string // files
	lends      []string // files that may take its address, to read
	methods    []string // of the field's type, that change it
}

var ownedState = []owned{
	{dir: "internal/consensus/raft", field: "hard", owners: []string{"hardstate.go"}},
	{dir: "internal/consensus/raft", field: "role", owners: []string{"role.go"}},
	{dir: "internal/consensus/raft", field: "lead", owners: []string{"role.go"}},
	{
		dir: "internal/consensus/raft", field: "log", owners: []string{"journal.go"}, lends: []string{"replica.go", "admission.go"},
		methods: []string{"Append", "Truncate", "Reset", "CommitTo", "Installed", "ApplyTo", "Compact", "Persisted", "Write", "HandOut"},
	},
	{
		dir: "internal/consensus/raft", field: "configs", owners: []string{"journal.go"}, lends: []string{"replica.go"},
		methods: []string{"Append", "Truncate", "Reset", "CommitTo", "ApplyTo", "Compact", "Revise", "AddTombstone"},
	},
}

// TestOwners_table keeps the table true: what it names is there.
func TestOwners_table(t *testing.T) {
	r, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range ownedState {
		fields := map[string]bool{}
		for i := range r.files {
			f := &r.files[i]
			if f.dir != o.dir {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if field, ok := n.(*ast.Field); ok {
					for _, name := range field.Names {
						fields[name.Name] = true
					}
				}
				return true
			})
		}
		if !fields[o.field] {
			t.Errorf("%s has no field %s", o.dir, o.field)
		}
		for _, name := range slices.Concat(o.owners, o.lends) {
			if !slices.ContainsFunc(r.files, func(f file) bool { return f.path == o.dir+"/"+name }) {
				t.Errorf("%s has no file %s", o.dir, name)
			}
		}
	}
}

// TestOwners keeps state with its owner: other files of the package assign nothing to it, and call nothing that changes it.
func TestOwners(t *testing.T) { check(t, checkOwners) }

func checkOwners(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		if f.test {
			continue
		}
		for _, o := range ownedState {
			in := func(names []string) bool {
				return slices.ContainsFunc(names, func(name string) bool { return f.path == o.dir+"/"+name })
			}
			if o.dir != f.dir || in(o.owners) {
				continue
			}
			for _, n := range o.writesIn(f.syntax, in(o.lends)) {
				p.addf("%s: %s is written in %s only", r.at(n), o.field, strings.Join(o.owners, " and "))
			}
		}
	}
	return p
}

// writesIn returns what in a file changes the state, or takes its address, unless the file is lent it.
func (o *owned) writesIn(file *ast.File, lent bool) (found []ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if slices.ContainsFunc(n.Lhs, o.names) {
				found = append(found, n)
			}
		case *ast.IncDecStmt:
			if o.names(n.X) {
				found = append(found, n)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND && o.names(n.X) && !lent {
				found = append(found, n)
			}
		case *ast.CallExpr:
			method, ok := n.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains(o.methods, method.Sel.Name) && o.names(method.X) {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// names reports whether an expression is the field of a value, or lies in it.
func (o *owned) names(e ast.Expr) bool {
	for {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			if x.Sel.Name == o.field {
				return true
			}
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.UnaryExpr:
			e = x.X
		default:
			return false
		}
	}
}
