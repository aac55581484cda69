package tidy_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// impure are the packages that give a function more than its arguments: time, locks, I/O, randomness.
var impure = []string{"time", "sync", "sync/atomic", "context", "os", "net", "log", "log/slog", "math/rand",
	"math/rand/v2", "crypto/rand", "io/fs", "runtime"}

func pure(f *file) bool {
	return !f.test && (strings.HasPrefix(f.dir, "internal/consensus") || f.dir == "internal/kv" ||
		f.dir == "internal/base/keyrange" || f.dir == "internal/base/invariant" || f.dir == "internal/membership" || f.dir == "internal/identity" ||
		f.dir == "internal/doctor" || f.dir == "internal/base/heavy")
}

// TestPurity keeps the core a function of its inputs: no clock, I/O, lock, goroutine, channel or map order.
func TestPurity(t *testing.T) { check(t, checkCoreInputs) }

func checkCoreInputs(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		if !pure(f) {
			continue
		}
		for _, imported := range f.imports() {
			if slices.Contains(impure, imported) {
				p.addf("%s: the core imports %s: pass what it gives as an input", f.path, imported)
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "starts a goroutine"
			case *ast.SelectStmt:
				what = "selects"
			case *ast.ChanType:
				what = "has a channel"
			case *ast.SendStmt:
				what = "sends on a channel"
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					what = "receives from a channel"
				}
			}
			if what != "" {
				p.addf("%s: the core %s", r.at(n), what)
			}
			return true
		})
	}
	return p
}

// TestPurity_mapOrder finds loops over what is declared as a map in the same file. It sees declared names only; the
// simulator's equal-bytes test finds the rest.
func TestPurity_mapOrder(t *testing.T) { check(t, checkCoreOrder) }

func checkCoreOrder(r *tree) []string {
	var p report
	for i := range r.files {
		f := &r.files[i]
		if !pure(f) {
			continue
		}
		maps := mapNames(f.syntax)
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			loop, ok := n.(*ast.RangeStmt)
			if !ok {
				return true
			}
			name := ""
			switch x := loop.X.(type) {
			case *ast.Ident:
				name = x.Name
			case *ast.SelectorExpr:
				name = x.Sel.Name
			}
			if maps[name] {
				p.addf("%s: the core loops over map %s: its order is chance", r.at(n), name)
			}
			return true
		})
	}
	return p
}

func mapNames(syntax *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if _, ok := n.Type.(*ast.MapType); ok {
				for _, name := range n.Names {
					names[name.Name] = true
				}
			}
		case *ast.AssignStmt:
			for i, value := range n.Rhs {
				call, ok := value.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 || i >= len(n.Lhs) {
					continue
				}
				if _, ok := call.Args[0].(*ast.MapType); !ok {
					continue
				}
				if name, ok := n.Lhs[i].(*ast.Ident); ok {
					names[name.Name] = true
				}
			}
		}
		return true
	})
	return names
}
